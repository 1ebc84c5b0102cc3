import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

export const instanceUnquarantined = defineCommand({
  type: 'instance.unquarantined',
  addressesAll: true,
  holdsInWhatIf: true,
  data: { serverId: z.string() },
  names: { serverId: 'server' },
  example: { serverId: '0b7e62a5-6b1c-4c35-9e0a-6a4f6f0a2f11' },
  sentence: (event, nameOf) => `released ${nameOf(event.data.serverId)} from quarantine${comment(event)}`,
});
