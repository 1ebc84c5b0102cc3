import { cellsAskedSchema } from '../snapshot.ts';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/**
 * A plan for moves between cells is to be made for servers of this aggregate: a scorer observes the cloud for it, and a planner
 * answers with `plan.proposed`.
 */
export const cellsMoveAsked = defineCommand({
  type: 'cells.moveAsked',
  addressesAll: false,
  holdsInWhatIf: false,
  data: cellsAskedSchema.shape,
  names: {
    from: 'anywhere',
    to: 'aggregate',
    flavorMap: 'flavors',
    servers: 'anywhere',
    project: 'project',
    limit: 'kept',
  },
  example: { from: ['gpu'], to: 'new', flavorMap: { small: 'small2' }, servers: null, project: null, limit: 10 },
  sentence: (event) =>
    `asked for a plan between cells from ${event.data.from.join(', ')} to ${event.data.to}${comment(event)}`,
});
