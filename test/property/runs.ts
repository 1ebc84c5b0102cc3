/** Cases per property. `.ci/nightly` sets PROPERTY_RUNS to ten times as many. */
export const RUNS = Number(process.env.PROPERTY_RUNS ?? 300);
/** Seed of the cases. */
export const SEED = Number(process.env.PROPERTY_SEED ?? 7);
