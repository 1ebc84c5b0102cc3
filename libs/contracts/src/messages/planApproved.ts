import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment, stepsText } from './phrases.ts';

/** `steps` null: all of them. Approving a step approves what it depends on. */
export const planApproved = defineCommand({
  type: 'plan.approved',
  addressesAll: true,
  holdsInWhatIf: false,
  data: {
    planId: z.string(),
    steps: z.array(z.int().min(1)).nullable(),
  },
  names: { planId: 'id', steps: 'nested' },
  example: { planId: 'gpu-20260105T000000Z', steps: [1, 2] },
  sentence: (event) => `approved ${stepsText(event.data.steps)} of ${event.data.planId}${comment(event)}`,
});
