import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

export const aggregateResumed = defineCommand({
  type: 'aggregate.resumed',
  addressesAll: true,
  holdsInWhatIf: true,
  data: {},
  names: {},
  example: {},
  sentence: (event) => `resumed${comment(event)}`,
});
