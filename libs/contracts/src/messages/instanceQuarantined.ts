import { z } from 'zod';
import { span } from '../words.ts';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

export const instanceQuarantined = defineCommand({
  type: 'instance.quarantined',
  addressesAll: true,
  holdsInWhatIf: true,
  data: {
    serverId: z.string(),
    /** -1: until released. */
    seconds: z.number().min(-1),
  },
  names: { serverId: 'server', seconds: 'kept' },
  example: { serverId: '0b7e62a5-6b1c-4c35-9e0a-6a4f6f0a2f11', seconds: 3600 },
  sentence: (event, nameOf) =>
    `quarantined ${nameOf(event.data.serverId)} ${event.data.seconds < 0 ? 'until it is released' : `for ${span(1000 * event.data.seconds)}`}${comment(event)}`,
});
