/** Carries out the next step of one drain: reads the log and Nova, asks drainStep.ts, and performs its answer. */

import type { Clock } from '@kronos/clock';
import { type Actor, type HostAct, subject } from '@kronos/contracts';
import { AppendConflict, type EventLog, type LogPosition } from '@kronos/eventlog';
import { serviceOf } from '@kronos/facts';
import { HttpError, type Nova } from '@kronos/openstack';
import { type AggregateState, type DrainFacts, drainRuleFacts, inFlight } from '@kronos/projections';
import { HOST_ACT_WINDOW_MS, hostActBlocked, isAbandoned, nextDrainAct } from '@kronos/rules';
import type { Logger } from '@kronos/telemetry';
import { actWithin } from '../act.ts';
import type { LogReader } from '../logReader.ts';
import { serverOrGone } from '../serverOrGone.ts';
import {
  type Claim,
  changed,
  claimBody,
  claimStep,
  drainedBody,
  type HostEventBody,
  hostEvent,
  leftAsFound,
  notChanged,
  type ServiceUpdate,
  watchStep,
} from './drainStep.ts';

export interface HostDeps {
  readonly log: Pick<EventLog, 'append'>;
  readonly reader: LogReader;
  readonly nova: Pick<
    Nova,
    'getServer' | 'listServerIdsByHost' | 'listServices' | 'listServers' | 'listUnfinishedMigrations' | 'updateService'
  >;
  /** `[executor] dry_run`: nothing is asked of Nova but reads. */
  readonly dryRun: boolean;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The drain while its claim is in force, with where the log stands. */
type Held = { readonly at: LogPosition<AggregateState>; readonly drain: DrainFacts };

/** Carries out the steps of drains. */
export class HostDrains {
  readonly #deps: HostDeps;
  readonly #signal: AbortSignal;

  /** @param signal nothing is sent or written once it is aborted */
  constructor(deps: HostDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  /**
   * Does what is due for the drain of one host.
   *
   * @throws AppendConflict or AppendWithdrawn when the log changed meanwhile
   */
  async advance(aggregate: string, host: string): Promise<void> {
    const { reader, clock, dryRun, logger } = this.#deps;
    const at = await reader.refresh(aggregate);
    const drain = at.state.drains.get(host);
    if (drain === undefined) return;
    const next = nextDrainAct(drainRuleFacts(drain), clock.now());
    switch (next.do) {
      case 'wait':
        return;
      case 'watch':
        return this.#watch(aggregate, at, drain);
      case 'leave':
        await this.#write(at, aggregate, leftAsFound(drain));
        return;
      case 'claim': {
        const blockedBy = hostActBlocked(at.state, next.act, { executorDryRun: dryRun });
        if (blockedBy !== null) {
          logger.debug({ aggregate, host, act: next.act, blockedBy }, 'the service of a host is not changed');
          return;
        }
        const claim = await this.#claimed(aggregate, at, drain, next);
        if (claim !== null) await this.#act(claim);
      }
    }
  }

  async #claimed(
    aggregate: string,
    at: LogPosition<AggregateState>,
    drain: DrainFacts,
    { act, attempt }: { readonly act: HostAct; readonly attempt: number },
  ): Promise<Claim | null> {
    const { reader, clock, dryRun } = this.#deps;
    const by = clock.read().mono + HOST_ACT_WINDOW_MS;
    const { host } = drain;
    const appended = await this.#write(at, aggregate, claimBody(drain, act, attempt), {
      timeoutMs: HOST_ACT_WINDOW_MS,
      // A pause, or the end of the drain, may have come while the append waited for NATS.
      veto: () => {
        const now = reader.at(aggregate).state;
        if (now.drains.get(host)?.asked.commandId !== drain.asked.commandId) return 'the drain has ended';
        return hostActBlocked(now, act, { executorDryRun: dryRun });
      },
    });
    // A duplicate is another executor's, and gives no right to act.
    if (appended.duplicate) return null;
    return { aggregate, host, act, attempt, sequence: appended.sequence, by };
  }

  /** Null once the claim is no longer in force. */
  async #held(claim: Claim): Promise<Held | null> {
    const at = await this.#deps.reader.refresh(claim.aggregate);
    const drain = claimedDrain(claim, at.state);
    return drain === null ? null : { at, drain };
  }

  async #act(claim: Claim): Promise<void> {
    const now = await this.#held(claim);
    if (now === null) return;
    const step = claimStep(claim, now.drain, await this.#readService(claim.host));
    const result = step.do === 'write' ? step.event : await this.#request(claim, now.drain, step.update);
    if (result === null) {
      const about = { aggregate: claim.aggregate, host: claim.host, act: claim.act };
      this.#deps.logger.warn(
        about,
        'it is unknown whether Nova accepted the request: the executor checks again after the claim',
      );
      return;
    }
    // One result wins: it is written while the claim is in force, or not at all.
    for (let still = await this.#held(claim); still !== null; still = await this.#held(claim)) {
      try {
        await this.#write(still.at, claim.aggregate, result);
        return;
      } catch (error) {
        if (!(error instanceof AppendConflict)) throw error;
      }
    }
  }

  /** Changes the service; null: it is unknown whether Nova did. */
  async #request(claim: Claim, drain: DrainFacts, update: ServiceUpdate): Promise<HostEventBody | null> {
    const { reader, nova, clock, logger } = this.#deps;
    const about = { aggregate: claim.aggregate, host: claim.host, act: claim.act };
    const window = {
      by: claim.by,
      clock,
      held: () => !this.#signal.aborted && claimedDrain(claim, reader.at(claim.aggregate).state) !== null,
      lost: this.#signal,
    };
    try {
      const answer = await actWithin(window, (options) => nova.updateService(update, options));
      if (answer.outcome === 'unknown') return null;
      logger.info({ ...about, attempt: claim.attempt }, `the service of a host is ${update.status}`);
      return changed(claim, drain);
    } catch (error) {
      const result = notChanged(claim, drain, error);
      if (result === null) throw error;
      if (error instanceof HttpError)
        logger.error({ ...about, err: error }, 'Nova refused to change the service of a host');
      return result;
    }
  }

  /** Looks at a disabled host: somebody may have enabled it, and it may be empty. */
  async #watch(aggregate: string, at: LogPosition<AggregateState>, drain: DrainFacts): Promise<void> {
    const { nova, clock, logger } = this.#deps;
    const { host } = drain;
    const service = await this.#readService(host);
    const moving = inFlight(at.state).some((task) => task.step.from === host || task.destination === host);
    const step = watchStep(drain, service, { moving });
    if (step.do === 'wait') return;
    if (step.do === 'write') {
      logger.warn({ aggregate, host }, 'somebody enabled a host during its drain: the drain has ended');
      await this.#write(at, aggregate, step.event);
      return;
    }
    if (!(await isEmpty(host, nova, clock.now(), this.#signal))) return;
    logger.info({ aggregate, host }, 'a host is drained');
    await this.#write(at, aggregate, drainedBody(drain));
  }

  async #readService(host: string) {
    return serviceOf(await this.#deps.nova.listServices({ signal: this.#signal }), host);
  }

  /** Appends the decision that was made on this state. */
  #write(
    at: LogPosition<AggregateState>,
    aggregate: string,
    body: HostEventBody,
    more: { readonly timeoutMs?: number; readonly veto?: () => string | null } = {},
  ) {
    const { log, by, clock } = this.#deps;
    return log.append(hostEvent(aggregate, body, by, clock.now()), {
      ...more,
      expectedLastSequence: at.expectedOn(subject('results', aggregate)),
    });
  }
}

/** The drain that a claim is for; null once the claim is no longer in force. */
function claimedDrain(claim: Claim, { drains }: AggregateState): DrainFacts | null {
  const drain = drains.get(claim.host);
  return drain?.claim?.sequence === claim.sequence ? drain : null;
}

/** Whether Nova has no server on a host, and none that can still arrive. */
async function isEmpty(host: string, nova: HostDeps['nova'], nowMs: number, signal: AbortSignal): Promise<boolean> {
  // In this order: a server that arrives meanwhile shows in the first answer or in the second.
  const migrations = await nova.listUnfinishedMigrations({ signal });
  if ((await nova.listServers({ host }, { signal })).length > 0) return false;
  for (const row of migrations) {
    if (row.destCompute !== host && row.sourceCompute !== host) continue;
    // A row that Nova has abandoned brings no server: it would hold the drain for ever.
    const server = await serverOrGone(nova, row.serverId, signal);
    if (server !== 'gone' && !isAbandoned(row, server, nowMs)) return false;
  }
  return holdsNone(host, nova, signal);
}

/**
 * Whether Nova's hypervisor of a host has no server. Nova's list of servers silently leaves out the servers of a cell that it does not
 * reach; its list of hypervisors fails then. That list also has soft-deleted servers, which do not count.
 */
async function holdsNone(host: string, nova: HostDeps['nova'], signal: AbortSignal): Promise<boolean> {
  const ids = (await nova.listServerIdsByHost({ signal })).get(host);
  if (ids === undefined) return false;
  for (const id of ids) {
    if ((await serverOrGone(nova, id, signal)) !== 'gone') return false;
  }
  return true;
}
