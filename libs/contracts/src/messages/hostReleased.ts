import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/** The breaker of the host closes: its failures so far no longer count. */
export const hostReleased = defineCommand({
  type: 'host.released',
  addressesAll: true,
  holdsInWhatIf: true,
  data: { host: z.string().min(1) },
  names: { host: 'host' },
  example: { host: 'cmp12' },
  sentence: (event) => `closed the breaker of ${event.data.host}${comment(event)}`,
});
