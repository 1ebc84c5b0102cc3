/** The kinds of search results, and the views that show them. */
import { link } from './parts.js';

export const kinds = { aggregate: 'Aggregate', host: 'Host', vm: 'VM', plan: 'Plan', task: 'Task' };

export function address({ kind, id, aggregate, planId, sequence }) {
  if (kind === 'aggregate') return link.aggregate(id);
  if (kind === 'host') return link.host(aggregate, id);
  if (kind === 'vm') return link.vm(aggregate, id);
  return kind === 'plan' ? link.plan(id, sequence) : link.plan(planId);
}
