import { z } from 'zod';
import { reasonSchema } from '../envelope.ts';
import type { Naming } from './define.ts';

/** One attempt of a task. */
export const attemptOf = {
  taskId: z.string(),
  planId: z.string(),
  serverId: z.string(),
  attempt: z.int().min(1),
  from: z.string(),
  destination: z.string(),
};

export const attemptNames = {
  taskId: 'id',
  planId: 'id',
  serverId: 'server',
  attempt: 'kept',
  from: 'host',
  destination: 'host',
} as const satisfies { readonly [K in keyof typeof attemptOf]: Naming };

/** A confirm or a revert of a move between cells. */
export const settleOf = {
  ...attemptOf,
  /** `verified`, `operator`, `verification`, `wrong-host`, or a word that a later version adds. */
  cause: z.string(),
  reason: reasonSchema,
};
