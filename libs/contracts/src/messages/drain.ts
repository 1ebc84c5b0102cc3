import { z } from 'zod';
import { hostActSchema } from '../hostActs.ts';

/** A drain of one host: `drainId` is the id of the command that asked for it. */
export const drainOf = { drainId: z.string(), host: z.string() };

/** An attempt to change the nova-compute service of its host. */
export const actOf = { ...drainOf, act: hostActSchema, attempt: z.int().min(1) };
