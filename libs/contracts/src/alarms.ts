import { z } from 'zod';

/** An alarm for people. `key` identifies its cause, and its place when several places can have that cause. */
export const alarm = {
  key: z.string().min(1),
  /** A cause of `kronos status`. */
  code: z.string(),
  /** The place, as text. */
  about: z.string(),
  text: z.string(),
};
