import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

export const evaluationRequested = defineCommand({
  type: 'evaluation.requested',
  addressesAll: true,
  holdsInWhatIf: false,
  data: {
    /** `evaluate`: decide on it; `record`: keep it and never plan it. */
    purpose: z.enum(['evaluate', 'record']),
  },
  names: { purpose: 'kept' },
  example: { purpose: 'evaluate' },
  sentence: (event) =>
    `requested ${event.data.purpose === 'record' ? 'a recording' : 'an evaluation'} now${comment(event)}`,
});
