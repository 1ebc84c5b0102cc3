import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

export const aggregatePaused = defineCommand({
  type: 'aggregate.paused',
  addressesAll: true,
  holdsInWhatIf: true,
  data: {},
  names: {},
  example: {},
  sentence: (event) => `paused${comment(event)}`,
});
