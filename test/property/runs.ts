/** Cases per property. `.ci/nightly` sets PROPERTY_RUNS to twenty times as many. */
export const RUNS = Number(process.env.PROPERTY_RUNS ?? 150);
/** Seed of every property of the project. The nightly run draws its own; a failure prints the one that shows it. */
export const SEED = Number(process.env.PROPERTY_SEED ?? 7);
