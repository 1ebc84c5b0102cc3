import { z } from 'zod';
import { isoTimeSchema } from '../envelope.ts';
import { count } from '../words.ts';
import { defineMessage } from './define.ts';

/** The content of one notification of Nova. `after`: sequence of the host's message that it was added to. */
const noticeSchema = z.object({
  /** Null: it names none, but the nova-compute of the host sent it. */
  server: z.string().nullable(),
  deleted: z.boolean(),
  /** The nova-compute of this host sent it. */
  own: z.boolean(),
  event: z.string(),
  after: z.int().min(0),
});

/** One host: its full list of servers, and recent notifications. */
export const inventoryReported = defineMessage({
  type: 'inventory.reported',
  writers: ['scorer'],
  data: z.object({
    host: z.string(),
    /** Null: no scorer has read the list of this host yet. */
    instances: z.array(z.string()).nullable(),
    /** Oldest first; older ones are repeated for readers that missed messages, as only the newest message of a host is kept. */
    notices: z.array(noticeSchema),
    /** A reader whose last message of this host has a lower sequence may have missed notices. */
    completeFrom: z.int().min(0),
    /** Sequence of the host's message before this one; 0: there was none. */
    after: z.int().min(0),
    observedAt: isoTimeSchema,
    /** Nova's event type, or `read`: the list was read from Nova and differed. */
    cause: z.string(),
  }),
  sentence: (event) =>
    `${event.data.host} has ${event.data.instances === null ? 'servers that were not read yet' : count(event.data.instances.length, 'instance')} (${event.data.cause})`,
});
export type InventoryReported = z.infer<typeof inventoryReported.schema>;
