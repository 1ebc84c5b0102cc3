import type { ApiContext, Handlers } from '../context.ts';
import { hostsAnswer, pictureAnswer, planHostsAnswer, vmsAnswer } from '../cycle.ts';
import { noPlan } from '../lookups.ts';
import { limitOf } from '../query.ts';

/** Hosts and VMs as snapshots have them. */
export const snapshotsHandlers = ({
  lookups,
}: ApiContext): Pick<Handlers, 'hosts' | 'picture' | 'vms' | 'planHosts'> => ({
  hosts: async ({ params, query }) =>
    hostsAnswer(await lookups.snapshotOf(lookups.known(params.name), query.get('snapshot'))),

  picture: async ({ params, query }) =>
    pictureAnswer(await lookups.snapshotOf(lookups.known(params.name), query.get('snapshot'))),

  async vms({ params, query }) {
    const filter = {
      host: query.get('host'),
      id: query.get('id'),
      limit: limitOf(query),
      after: query.get('after'),
    };
    return vmsAnswer(await lookups.snapshotOf(lookups.known(params.name), query.get('snapshot')), filter);
  },

  async planHosts({ params: { id = '' }, query }) {
    const decision = await lookups.decisionOf(id, query);
    const steps = decision?.data.plan?.steps;
    if (decision === null || steps === undefined) throw noPlan(id);
    const { aggregate, data } = decision;
    const snapshot = await lookups.recordedSnapshot(aggregate, data.snapshotId, data.snapshotTime);
    return planHostsAnswer(snapshot, id, steps);
  },
});
