import { type LogEventOf, makesRoom, timeOf } from '@kronos/contracts';
import { BadObject, MissingObject } from '@kronos/eventlog';
import { cellStoriesOf, recordedDecision, type WholeProposal, wholeProposal } from '@kronos/replay';
import { BadRequest, wholeNumber } from './answer.ts';
import type { ApiInput, Costly } from './context.ts';
import { cellPlan } from './describe.ts';
import { type NameOf, namesIn } from './names.ts';
import { type Reads, reaches } from './reads.ts';
import type { Snapshots } from './snapshots.ts';
import { aggregateNames, findPlan, statesOf } from './stateJson.ts';

export type LookupsInput = {
  readonly input: ApiInput;
  readonly reads: Reads;
  readonly snapshots: Snapshots;
  readonly loading: Costly;
};

/** Finds what a request names; each throws BadRequest when there is no such thing. */
export type Lookups = ReturnType<typeof createLookups>;

export function createLookups({ input, reads, snapshots, loading }: LookupsInput) {
  const { history, log, scope } = input;

  const now = (): string => new Date(input.clock()).toISOString();

  /** @throws BadRequest for an aggregate that neither the configuration nor the log has */
  function known(aggregate = ''): string {
    if (!aggregateNames(scope, input.state()).includes(aggregate))
      throw new BadRequest(404, `no aggregate ${JSON.stringify(aggregate)}`);
    return aggregate;
  }

  /** The aggregates that a query asks for: one, or all. */
  function chosen(query: URLSearchParams) {
    const name = query.get('aggregate');
    const states = statesOf(scope, input.state());
    if (name === null) return states;
    const one = states.filter((state) => state.aggregate === name);
    if (one.length === 0) throw new BadRequest(404, `no aggregate ${JSON.stringify(name)}`);
    return one;
  }

  /** The names of VMs, as the recent plans have them. */
  const names = (): NameOf => namesIn(() => history.events());

  /** The decision that made a plan; null when it is not found. */
  async function decisionOf(planId: string, query: URLSearchParams) {
    const known = findPlan(input.state(), planId)?.page.sequence ?? history.planSequence(planId);
    const sequence = wholeNumber(query, 'sequence') ?? known;
    const event = sequence === null ? null : (await reads.eventAt(sequence))?.event;
    return event?.type === 'cycle.decided' && event.data.plan?.id === planId ? event : null;
  }

  /** With the reasons of its steps, which a large decision keeps beside the log; without them when those are gone. */
  async function inFull(decision: LogEventOf<'cycle.decided'>) {
    const { details } = decision.data;
    if (details === null) return decision;
    try {
      const bytes = await loading(() => log.objects.get(details));
      return { ...decision, data: { ...decision.data, ...recordedDecision(decision.data, bytes) } };
    } catch (error) {
      if (error instanceof MissingObject || error instanceof BadObject) return decision;
      throw error;
    }
  }

  /** Plans between cells among the recent events that name a VM, the newest first. */
  async function cellPlans(serverId: string) {
    const events = [...history.events()].reverse();
    const nameOf = names();
    const plans: WholeProposal[] = [];
    for (const stored of events) {
      const { event, sequence } = stored;
      if (event.type !== 'plan.proposed' || makesRoom(event)) continue;
      const decision = await wholeProposal((ref) => loading(() => log.objects.get(ref)), event);
      plans.push({ sequence, timeMs: timeOf(stored), event, decision });
    }
    return cellStoriesOf(plans, events, (id) => id === serverId, input.clock()).map((story) => cellPlan(story, nameOf));
  }

  /** The recent decisions of an aggregate, from then on; null: all. */
  function decisionsSince(aggregate: string, since: number | Date | null) {
    return history
      .decisions(aggregate)
      .filter(({ sequence, time }) => since === null || reaches(sequence, Date.parse(time), since));
  }

  /** @throws BadRequest when it is not in memory */
  function decisionAbout(aggregate: string, id: string) {
    const decision = history.decisions(aggregate).findLast(({ snapshotId }) => snapshotId === id);
    if (decision !== undefined) return decision;
    throw new BadRequest(
      404,
      `${JSON.stringify(aggregate)} has no recent decision about a snapshot ${JSON.stringify(id)}`,
    );
  }

  /** The newest snapshot, or a recorded one of which the decision is in memory. */
  async function snapshotOf(aggregate: string, id: string | null) {
    if (id === null) {
      const newest = await snapshots.newest(aggregate);
      if (newest === null)
        throw new BadRequest(404, `no snapshot of ${JSON.stringify(aggregate)} is kept: kronos status shows why`);
      return newest;
    }
    const decision = decisionAbout(aggregate, id);
    return await recordedSnapshot(aggregate, id, decision.time);
  }

  /** @throws BadRequest when it is no longer kept */
  async function recordedSnapshot(aggregate: string, id: string, time: string) {
    return (await snapshots.recorded(aggregate, id, Date.parse(time))) ?? gone(id);
  }

  return {
    now,
    known,
    chosen,
    names,
    decisionOf,
    inFull,
    cellPlans,
    decisionsSince,
    decisionAbout,
    snapshotOf,
    recordedSnapshot,
  };
}

export const noPlan = (id: string) =>
  new BadRequest(
    404,
    `no plan ${JSON.stringify(id)} among the recent ones; for an older one add ?sequence= with the sequence of its event, or use kronos explain plan`,
  );

function gone(snapshotId: string): never {
  throw new BadRequest(
    410,
    `the snapshot ${snapshotId} is no longer kept: [nats] snapshot_max_age sets how long snapshots are kept`,
  );
}
