import { fileURLToPath } from 'node:url';

/** Settings that all configurations of vitest share. */
export const common = {
  root: fileURLToPath(new URL('..', import.meta.url)),
  // Print expected and received values in full: of a run elsewhere only the log remains.
  chaiConfig: { truncateThreshold: 0 },
};
