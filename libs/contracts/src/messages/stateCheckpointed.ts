import { z } from 'zod';
import { objectRefSchema } from '../envelope.ts';
import { defineMessage } from './define.ts';

/** The folded state of one aggregate at a log sequence. The state's own form is of libs/projections. */
export const stateCheckpointed = defineMessage({
  type: 'state.checkpointed',
  writers: ['ledger'],
  data: z.object({
    sequence: z.int().min(0),
    foldVersion: z.int().min(1),
    /** `sha256:<hex>` of the canonical JSON of `state`. */
    digest: z.string(),
    /** Null when it is kept in the object store, then `body` says where. */
    state: z.json().nullable(),
    body: objectRefSchema.nullable(),
    /** Installation id in force at `sequence`; null: the log named none yet. Absent: written by Kronos 0.1. */
    installationId: z.string().nullable().optional(),
  }),
  sentence: (event) => `checkpoint of the log up to ${event.data.sequence}`,
});
export type StateCheckpointed = z.infer<typeof stateCheckpointed.schema>;
