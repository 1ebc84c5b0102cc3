/** Carries out what operators asked of hosts: disables and enables their nova-compute services, and sees when they are empty. */
import {
  type Actor,
  disabledReasonOf,
  type HostAct,
  type HostEvent,
  messageId,
  type Reason,
  type StoredEvent,
  subject,
} from '@kronos/contracts';
import { AppendConflict, AppendWithdrawn, type EventLog, type LogPosition } from '@kronos/eventlog';
import { type ComputeService, HttpError, NotSent, type Nova, Unauthorized } from '@kronos/openstack';
import { type AggregateState, type DrainFacts, drainRuleFacts, inFlight } from '@kronos/projections';
import { HOST_ACT_WINDOW_MS, hostActBlocked, judgeService, nextDrainAct, type ServiceVerdict } from '@kronos/rules';
import type { Logger } from '@kronos/telemetry';
import type { Clock } from './clock.ts';
import { actWithin, type LogReader } from './run.ts';

export interface DrainsDeps {
  readonly log: Pick<EventLog, 'append'>;
  readonly reader: LogReader;
  /** Those that this executor serves. */
  readonly aggregates: readonly string[];
  readonly nova: Pick<Nova, 'listServices' | 'listServers' | 'listUnfinishedMigrations' | 'updateService'>;
  /** `[executor] dry_run`: nothing is asked of Nova but reads. */
  readonly dryRun: boolean;
  /** Why nothing may be done now: the log is in doubt, or the own clock is wrong; null: nothing is wrong. */
  readonly problem: () => string | null;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How often Nova is asked about the hosts that are being drained; without a drain nothing is asked. Default 10 s. */
  readonly pollMs?: number;
}

/** Tends the drains of the aggregates that this executor serves. Any number of executors may do so at once. */
export interface Drains {
  /** An event was folded. */
  changed(stored: Pick<StoredEvent, 'event'>): void;
  /** Looks at once, and goes on for as long as there is a drain. */
  wake(): void;
  /** Nothing is sent or written any more once what runs has noticed. */
  stop(): void;
}

const POLL_MS = 10_000;
/** What may bring a drain forward: it is looked at without waiting for the next poll. */
const WAKES: ReadonlySet<string> = new Set([
  'host.drainAsked',
  'host.undrainAsked',
  'aggregate.resumed',
  'planner.configured',
  'migration.completed',
]);

/** A claim of this executor that is on the log. */
interface Claim {
  readonly aggregate: string;
  readonly host: string;
  readonly act: HostAct;
  readonly attempt: number;
  readonly sequence: number;
  /** Monotonic: the request is sent by then, or never. */
  readonly by: number;
}

type HostEventBody = HostEvent extends infer E
  ? E extends { readonly type: string; readonly data: unknown }
    ? Pick<E, 'type' | 'data'> & { readonly id: string }
    : never
  : never;

export function tendDrains(deps: DrainsDeps): Drains {
  const { aggregates, clock, logger, nova, reader } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  let round: Promise<void> | null = null;
  let again = false;
  let cancel: (() => void) | null = null;

  const drainsIn = (aggregate: string): ReadonlyMap<string, DrainFacts> => reader.at(aggregate).state.drains;

  function wake(): void {
    if (signal.aborted) return;
    again = round !== null;
    if (again) return;
    cancel?.();
    cancel = null;
    // Without a drain there is nothing to look after, until the log has one.
    if (aggregates.every((aggregate) => drainsIn(aggregate).size === 0)) return;
    round = tendAll().finally(() => {
      round = null;
      if (signal.aborted) return;
      if (again) wake();
      else cancel = clock.after(deps.pollMs ?? POLL_MS, wake);
    });
  }

  async function tendAll(): Promise<void> {
    for (const aggregate of aggregates) {
      if (drainsIn(aggregate).size === 0 || signal.aborted) continue;
      try {
        await tend(aggregate);
      } catch (error) {
        if (!signal.aborted)
          logger.warn({ aggregate, err: error }, 'the drains of an aggregate are looked at again later');
      }
    }
  }

  async function tend(aggregate: string): Promise<void> {
    const problem = deps.problem();
    if (problem !== null) {
      logger.warn({ aggregate, problem }, 'drains wait');
      return;
    }
    for (const host of drainsIn(aggregate).keys()) {
      if (signal.aborted) return;
      try {
        await tendHost(aggregate, host);
      } catch (error) {
        // Somebody else has written meanwhile: it is looked at again with what they wrote.
        if (!(error instanceof AppendConflict || error instanceof AppendWithdrawn)) throw error;
      }
    }
  }

  async function tendHost(aggregate: string, host: string): Promise<void> {
    const at = await reader.refresh(aggregate);
    const drain = at.state.drains.get(host);
    if (drain === undefined) return;
    const next = nextDrainAct(drainRuleFacts(drain), clock.now());
    switch (next.do) {
      case 'wait':
        return;
      case 'watch':
        return watch(aggregate, at, drain);
      case 'leave': {
        const code = 'not-ours';
        const reason = { code, text: 'it was disabled before the drain, and not by Kronos' };
        await write(at, aggregate, leftDisabled(drain, reason, drain.disabled?.reason ?? null));
        return;
      }
      case 'claim': {
        const blockedBy = hostActBlocked(at.state, next.act, deps.dryRun);
        if (blockedBy !== null) {
          logger.debug({ aggregate, host, act: next.act, blockedBy }, 'the service of a host is not changed');
          return;
        }
        const claim = await claimed(aggregate, at, drain, next.act, next.attempt);
        if (claim !== null) await act(claim);
      }
    }
  }

  /** Appends the claim; null where another executor has it. */
  async function claimed(
    aggregate: string,
    at: LogPosition<AggregateState>,
    drain: DrainFacts,
    act: HostAct,
    attempt: number,
  ): Promise<Claim | null> {
    const by = clock.read().mono + HOST_ACT_WINDOW_MS;
    const { host } = drain;
    const drainId = drain.asked.commandId;
    const event = {
      type: 'host.claimed',
      id: messageId.hostClaimed(drainId, act, attempt),
      data: { drainId, host, act, attempt },
    } as const;
    const appended = await write(at, aggregate, event, {
      timeoutMs: HOST_ACT_WINDOW_MS,
      // A pause, or the end of the drain, may have come while the append waited for NATS.
      veto: () => {
        const now = reader.at(aggregate).state;
        if (now.drains.get(host)?.asked.commandId !== drainId) return 'the drain is over';
        return hostActBlocked(now, act, deps.dryRun);
      },
    });
    // A duplicate is another's, and gives no right to act.
    if (appended.duplicate) return null;
    return { aggregate, host, act, attempt, sequence: appended.sequence, by };
  }

  /** The drain while the claim is in force, with where the log stands; null once it is not. */
  async function standing(
    claim: Claim,
  ): Promise<{ readonly at: LogPosition<AggregateState>; readonly drain: DrainFacts } | null> {
    const at = await reader.refresh(claim.aggregate);
    const drain = at.state.drains.get(claim.host);
    return drain?.claim?.sequence === claim.sequence ? { at, drain } : null;
  }

  async function act(claim: Claim): Promise<void> {
    const now = await standing(claim);
    if (now === null) return;
    const { drain } = now;
    const service = await serviceOf(claim.host);
    const verdict = judgeService(claim.act, service, ownReason(drain), claim.attempt);
    const result = await resultOf(claim, drain, verdict, service);
    if (result === null) {
      const about = { aggregate: claim.aggregate, host: claim.host, act: claim.act };
      logger.warn(about, 'nobody knows whether Nova took the request: it is looked at again after the claim');
      return;
    }
    // One result wins: it is written while the claim is in force, or not at all.
    for (let held = await standing(claim); held !== null; held = await standing(claim)) {
      try {
        await write(held.at, claim.aggregate, result);
        return;
      } catch (error) {
        if (!(error instanceof AppendConflict)) throw error;
      }
    }
  }

  /** What became of a claim; null: nobody knows. */
  async function resultOf(
    claim: Claim,
    drain: DrainFacts,
    verdict: ServiceVerdict,
    service: ComputeService | null,
  ): Promise<HostEventBody | null> {
    switch (verdict.kind) {
      case 'done':
        return succeeded(claim, drain, true, service);
      case 'doneByOthers':
        return succeeded(claim, drain, false, service);
      case 'leave':
        return leftDisabled(drain, { code: verdict.code, text: verdict.text }, service?.disabledReason ?? null);
      case 'unknown':
        return failed(claim, drain, null, verdict.text);
      case 'change':
        if (claim.act === 'disable' && drain.undrainAsked !== null)
          return failed(claim, drain, null, 'the drain was taken back before the host was disabled');
        return change(claim, drain, service);
    }
  }

  async function change(
    claim: Claim,
    drain: DrainFacts,
    service: ComputeService | null,
  ): Promise<HostEventBody | null> {
    const { aggregate, host } = claim;
    const serviceId = service?.id ?? null;
    if (serviceId === null) return failed(claim, drain, null, 'Nova names no id of its service');
    const held = (): boolean => {
      const now = reader.at(aggregate).state.drains.get(host);
      return !signal.aborted && now?.claim?.sequence === claim.sequence;
    };
    const request =
      claim.act === 'enable'
        ? ({ serviceId, status: 'enabled' } as const)
        : ({ serviceId, status: 'disabled', disabledReason: ownReason(drain) } as const);
    try {
      const answer = await actWithin({ by: claim.by, clock, held, lost: signal }, (options) =>
        nova.updateService(request, options),
      );
      if (answer.outcome === 'unknown') return null;
      logger.info(
        { aggregate, host, act: claim.act, attempt: claim.attempt },
        `the service of a host is ${request.status}`,
      );
      return succeeded(claim, drain, true, null);
    } catch (error) {
      if (error instanceof HttpError && error.status < 500) {
        logger.error({ aggregate, host, act: claim.act, err: error }, 'Nova refuses to change the service of a host');
        return failed(claim, drain, error.status, error.reason);
      }
      if (error instanceof Unauthorized) return failed(claim, drain, 401, error.message);
      if (error instanceof NotSent) return failed(claim, drain, null, `it was not sent: ${error.reason}`);
      throw error;
    }
  }

  /** Looks at a disabled host: somebody may have enabled it, and it may be empty. */
  async function watch(aggregate: string, at: LogPosition<AggregateState>, drain: DrainFacts): Promise<void> {
    const { host } = drain;
    const drainId = drain.asked.commandId;
    const service = await serviceOf(host);
    if (service === null || service.status === 'unknown') return;
    if (service.status === 'enabled') {
      logger.warn({ aggregate, host }, 'somebody enabled a host that is being drained: its drain is over');
      const id = messageId.hostDrainEnded(drainId);
      await write(at, aggregate, { type: 'host.enabled', id, data: { drainId, host, byKronos: false } });
      return;
    }
    if (drain.drained !== null || inFlight(at.state).some((t) => t.step.from === host || t.destination === host))
      return;
    // In this order: a server that arrives meanwhile shows in the second answer or in the third.
    const arriving = await nova.listUnfinishedMigrations({ signal });
    const busy = arriving.some((m) => m.destCompute === host || m.sourceCompute === host);
    if (busy || (await nova.listServers({ host }, { signal })).length > 0) return;
    logger.info({ aggregate, host }, 'a host is drained');
    await write(at, aggregate, { type: 'host.drained', id: messageId.hostDrained(drainId), data: { drainId, host } });
  }

  async function serviceOf(host: string): Promise<ComputeService | null> {
    const found = (await nova.listServices({ signal })).filter((service) => service.host === host);
    return found.length === 1 ? (found[0] ?? null) : null;
  }

  /** Appends what was decided on this state, and waits until it is folded. */
  async function write(
    at: LogPosition<AggregateState>,
    aggregate: string,
    { type, id, data }: HostEventBody,
    more: { readonly timeoutMs?: number; readonly veto?: () => string | null } = {},
  ) {
    const { drainId } = data;
    const event = {
      type,
      version: 1,
      id,
      time: new Date(clock.now()).toISOString(),
      aggregate,
      by: deps.by,
      correlationId: drainId,
      causationId: messageId.control(drainId),
      data,
    } as HostEvent;
    return deps.log.append(event, { ...more, expectedLastSequence: at.expectedOn(subject('results', aggregate)) });
  }

  return {
    changed: ({ event }) => {
      if (WAKES.has(event.type)) wake();
    },
    wake,
    stop() {
      stopping.abort();
      cancel?.();
    },
  };
}

const ownReason = ({ asked }: DrainFacts): string => disabledReasonOf(asked.commandId, asked.by, asked.comment);

const leftDisabled = ({ asked, host }: DrainFacts, reason: Reason, disabledReason: string | null): HostEventBody => ({
  type: 'host.leftDisabled',
  id: messageId.hostDrainEnded(asked.commandId),
  data: { drainId: asked.commandId, host, reason, disabledReason },
});

const failed = (
  { act, attempt, host }: Claim,
  { asked }: DrainFacts,
  status: number | null,
  text: string,
): HostEventBody => ({
  type: 'host.actFailed',
  id: messageId.hostActFailed(asked.commandId, act, attempt),
  data: { drainId: asked.commandId, host, act, attempt, status, text },
});

function succeeded(
  { act, host }: Claim,
  drain: DrainFacts,
  byKronos: boolean,
  service: ComputeService | null,
): HostEventBody {
  const drainId = drain.asked.commandId;
  if (act === 'enable')
    return { type: 'host.enabled', id: messageId.hostDrainEnded(drainId), data: { drainId, host, byKronos } };
  const disabledReason = byKronos ? ownReason(drain) : (service?.disabledReason ?? null);
  return {
    type: 'host.disabled',
    id: messageId.hostDisabled(drainId),
    data: { drainId, host, byKronos, disabledReason },
  };
}
