/** Whether the slow tests run, too: `.ci/nightly` sets KRONOS_NIGHTLY=1. */
export const nightly: boolean = process.env.KRONOS_NIGHTLY === '1';
