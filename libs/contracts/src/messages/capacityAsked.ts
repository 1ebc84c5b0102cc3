import { capacityAskedSchema } from '../snapshot.ts';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/**
 * A plan is to be made that makes room for new VMs in this aggregate: a scorer observes the cloud for it, and a planner answers with
 * `plan.proposed`.
 */
export const capacityAsked = defineCommand({
  type: 'capacity.asked',
  addressesAll: false,
  holdsInWhatIf: false,
  data: capacityAskedSchema.shape,
  names: { shape: 'shape', count: 'kept', maxMoves: 'kept' },
  example: {
    count: 4,
    shape: { name: 'small', resources: { VCPU: 2, MEMORY_MB: 4096 }, requiredTraits: [], forbiddenTraits: [] },
  },
  sentence: (event) => `asked for room for ${event.data.count} of ${event.data.shape.name}${comment(event)}`,
});
