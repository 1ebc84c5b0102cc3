import { iso, type LogEventOf, makesRoom, timeMs, timeOf } from '@kronos/contracts';
import { isUnusableObject } from '@kronos/eventlog';
import { aggregateState } from '@kronos/projections';
import { cellStoriesOf, recordedDecision, type WholeProposal, wholeProposal } from '@kronos/replay';
import { ApiError } from './answer.ts';
import { cellPlan } from './describe.ts';
import type { ApiInput, Costly } from './input.ts';
import { namesIn, type ServerNameOf } from './names.ts';
import { numberParameter } from './query.ts';
import { isSince, type Reads } from './reads.ts';
import type { Snapshots } from './snapshots.ts';
import { aggregateNames, findPlan, statesOf } from './stateJson.ts';

export type LookupsInput = {
  readonly input: ApiInput;
  readonly reads: Reads;
  readonly snapshots: Snapshots;
  readonly loading: Costly;
};

/** Finds what a request names; each throws ApiError when there is no such thing. */
export class Lookups {
  readonly #input: ApiInput;
  readonly #reads: Reads;
  readonly #snapshots: Snapshots;
  readonly #loading: Costly;

  constructor({ input, reads, snapshots, loading }: LookupsInput) {
    this.#input = input;
    this.#reads = reads;
    this.#snapshots = snapshots;
    this.#loading = loading;
  }

  now(): string {
    return iso(this.#input.clock());
  }

  /** @throws ApiError for an aggregate that neither the configuration nor the log has */
  known(aggregate = ''): string {
    const { scope, state } = this.#input;
    if (!aggregateNames(scope, state()).includes(aggregate))
      throw new ApiError(404, `no aggregate ${JSON.stringify(aggregate)}`);
    return aggregate;
  }

  /** The aggregates that a query asks for: one, or all. */
  chosen(query: URLSearchParams) {
    const { scope, state } = this.#input;
    const name = query.get('aggregate');
    return name === null ? statesOf(scope, state()) : [aggregateState(state(), this.known(name))];
  }

  /** The names of VMs, as the recent plans have them. */
  names(): ServerNameOf {
    const { history } = this.#input;
    return namesIn(() => history.events());
  }

  /** The decision that made a plan; null when it is not found. */
  async decisionOf(planId: string, query: URLSearchParams) {
    const { history, state } = this.#input;
    const known = findPlan(state(), planId)?.page.sequence ?? history.planSequence(planId);
    const sequence = numberParameter(query, 'sequence') ?? known;
    const event = sequence === null ? null : (await this.#reads.eventAt(sequence))?.event;
    return event?.type === 'cycle.decided' && event.data.plan?.id === planId ? event : null;
  }

  /** Adds the reasons of the steps, which a large decision keeps beside the log; leaves them out when they are gone. */
  async inFull(decision: LogEventOf<'cycle.decided'>) {
    const { details } = decision.data;
    if (details === null) return decision;
    try {
      const bytes = await this.#loading(() => this.#input.log.objects.get(details));
      return { ...decision, data: { ...decision.data, ...recordedDecision(decision.data, bytes) } };
    } catch (error) {
      if (isUnusableObject(error)) return decision;
      throw error;
    }
  }

  /** Plans between cells among the recent events that name a VM, the newest first. */
  async cellPlans(serverId: string) {
    const { history, log, clock } = this.#input;
    const events = [...history.events()].reverse();
    const nameOf = this.names();
    const plans: WholeProposal[] = [];
    for (const stored of events) {
      const { event, sequence } = stored;
      if (event.type !== 'plan.proposed' || makesRoom(event)) continue;
      const decision = await wholeProposal((ref) => this.#loading(() => log.objects.get(ref)), event);
      plans.push({ sequence, timeMs: timeOf(stored), event, decision });
    }
    return cellStoriesOf(plans, events, (id) => id === serverId, clock()).map((story) => cellPlan(story, nameOf));
  }

  /** The recent decisions of an aggregate, from then on; null: all. */
  decisionsSince(aggregate: string, since: number | Date | null) {
    return this.#input.history
      .decisions(aggregate)
      .filter(({ sequence, time }) => since === null || isSince(sequence, timeMs(time), since));
  }

  /** @throws ApiError when it is not in memory */
  decisionAbout(aggregate: string, id: string) {
    const decision = this.#input.history.decisions(aggregate).findLast(({ snapshotId }) => snapshotId === id);
    if (decision !== undefined) return decision;
    throw new ApiError(
      404,
      `${JSON.stringify(aggregate)} has no recent decision about a snapshot ${JSON.stringify(id)}`,
    );
  }

  /** The newest snapshot, or a recorded one of which the decision is in memory. */
  async snapshotOf(aggregate: string, id: string | null) {
    if (id === null) {
      const newest = await this.#snapshots.newest(aggregate);
      if (newest === null)
        throw new ApiError(404, `no snapshot of ${JSON.stringify(aggregate)} is kept: kronos status shows why`);
      return newest;
    }
    const decision = this.decisionAbout(aggregate, id);
    return await this.recordedSnapshot(aggregate, id, decision.time);
  }

  /** @throws ApiError when it is no longer kept */
  async recordedSnapshot(aggregate: string, id: string, time: string) {
    return (await this.#snapshots.recorded(aggregate, id, timeMs(time))) ?? gone(id);
  }
}

export const noPlan = (id: string) =>
  new ApiError(
    404,
    `no plan ${JSON.stringify(id)} among the recent ones; for an older one add ?sequence= with the sequence of its event, or use kronos explain plan`,
  );

function gone(snapshotId: string): never {
  throw new ApiError(
    410,
    `the snapshot ${snapshotId} is no longer kept: [nats] snapshot_max_age sets how long snapshots are kept`,
  );
}
