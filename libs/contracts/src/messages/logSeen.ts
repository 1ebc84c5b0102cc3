import { z } from 'zod';
import { isoTimeSchema, logMarkSchema } from '../envelope.ts';
import { defineMessage } from './define.ts';

/** The ledger's last position on a log, on `_all_`. Services compare it with the log that they find. */
export const logSeen = defineMessage({
  type: 'log.seen',
  writers: ['ledger'],
  data: logMarkSchema.extend({
    /** `log`: it folds this log. `archive`: its archive reaches so far. */
    where: z.enum(['log', 'archive']),
    /** The server's stamp of the event at `sequence`. */
    storedAt: isoTimeSchema,
  }),
  sentence: (event) =>
    `the ledger has seen event ${event.data.sequence} of ${event.data.installationId ?? 'a log without an installation id'}${event.data.where === 'archive' ? ' in its archive' : ''}`,
});
export type LogSeen = z.infer<typeof logSeen.schema>;
