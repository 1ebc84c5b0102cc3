import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** The drain of the host ends: an executor enables the service if Kronos disabled it and nobody changed it since. */
export const hostUndrainAsked = defineCommand({
  type: 'host.undrainAsked',
  addressesAll: false,
  holdsInWhatIf: false,
  data: { host: z.string().min(1) },
  names: { host: 'host' },
  example: { host: 'cmp12' },
  sentence: (event) => `asked to end the drain of ${event.data.host}${comment(event)}`,
});
