import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment, stepsText } from './phrases.ts';

/** Rejecting a step rejects its dependents. */
export const planRejected = defineCommand({
  type: 'plan.rejected',
  addressesAll: true,
  holdsInWhatIf: false,
  data: {
    planId: z.string(),
    steps: z.array(z.int().min(1)).nullable(),
  },
  names: { planId: 'id', steps: 'nested' },
  example: { planId: 'gpu-20260105T000000Z', steps: null },
  sentence: (event) => `rejected ${stepsText(event.data.steps)} of ${event.data.planId}${comment(event)}`,
});
