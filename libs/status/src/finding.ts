import type { CauseCode, Place } from './causes.ts';

/** One thing that is not as it must be. `judge` orders findings by cause. */
export type Finding = {
  readonly code: CauseCode;
  readonly place: Place;
  /** The place in words. */
  readonly about: string;
  readonly text: string;
  /** Where it differs from the cause's own. */
  readonly remedy?: string;
};
