/** The steps of an executor for a drain, and their events. Pure: the inputs are facts of the log, an answer of Nova and a time. */
import { type Actor, disabledReasonOf, type HostAct, type HostEvent, iso, messageId } from '@kronos/contracts';
import type { DrainReasonCode, ReasonOf } from '@kronos/facts';
import { type ComputeService, HttpError, NotSent, type Nova, Unauthorized } from '@kronos/openstack';
import type { DrainFacts } from '@kronos/projections';
import { judgeService } from '@kronos/rules';

/** A claim of this executor that is on the log. */
export interface Claim {
  readonly aggregate: string;
  readonly host: string;
  readonly act: HostAct;
  readonly attempt: number;
  readonly sequence: number;
  /** Monotonic: the request is sent by then, or never. */
  readonly by: number;
}

export type ServiceUpdate = Parameters<Nova['updateService']>[0];

/** An event about a host without what all of them have. */
export type HostEventBody = HostEvent extends infer E
  ? E extends { readonly type: string; readonly data: unknown }
    ? Pick<E, 'type' | 'data'> & { readonly id: string }
    : never
  : never;

export const hostEvent = (aggregate: string, { type, id, data }: HostEventBody, by: Actor, nowMs: number): HostEvent =>
  ({
    type,
    version: 1,
    id,
    time: iso(nowMs),
    aggregate,
    by,
    correlationId: data.drainId,
    causationId: messageId.control(data.drainId),
    data,
  }) as HostEvent;

export const claimBody = ({ host, asked }: DrainFacts, act: HostAct, attempt: number): HostEventBody => ({
  type: 'host.claimed',
  id: messageId.hostClaimed(asked.commandId, act, attempt),
  data: { drainId: asked.commandId, host, act, attempt },
});

export const drainedBody = ({ host, asked }: DrainFacts): HostEventBody => ({
  type: 'host.drained',
  id: messageId.hostDrained(asked.commandId),
  data: { drainId: asked.commandId, host },
});

/** The drain ends, and the host stays as somebody else disabled it. */
export const leftAsFound = (drain: DrainFacts): HostEventBody =>
  leftDisabled(
    drain,
    { code: 'not-ours', text: 'it was disabled before the drain, and not by Kronos' },
    drain.disabled?.reason ?? null,
  );

/** The step after a claim, with the service of its host as Nova shows it. */
export type ClaimStep =
  | { readonly do: 'request'; readonly update: ServiceUpdate }
  | { readonly do: 'write'; readonly event: HostEventBody };

/** @param service null: Nova lists none for the host, or more than one */
export function claimStep(claim: Claim, drain: DrainFacts, service: ComputeService | null): ClaimStep {
  const write = (event: HostEventBody): ClaimStep => ({ do: 'write', event });
  const verdict = judgeService(claim.act, service, ownReason(drain), claim.attempt);
  switch (verdict.kind) {
    case 'done':
      return write(changed(claim, drain));
    case 'doneByOthers':
      return write(changedByOthers(claim, drain, service));
    case 'leave':
      return write(leftDisabled(drain, { code: verdict.code, text: verdict.text }, service?.disabledReason ?? null));
    case 'unknown':
      return write(failed(claim, drain, null, verdict.text));
    case 'change': {
      if (claim.act === 'disable' && drain.undrainAsked !== null)
        return write(failed(claim, drain, null, 'the drain was taken back before the host was disabled'));
      const serviceId = service?.id ?? null;
      if (serviceId === null) return write(failed(claim, drain, null, 'Nova names no id of its service'));
      return {
        do: 'request',
        update:
          claim.act === 'enable'
            ? { serviceId, status: 'enabled' }
            : { serviceId, status: 'disabled', disabledReason: ownReason(drain) },
      };
    }
  }
}

/** Nova did what the claim asked for, now or at an earlier attempt. */
export const changed = (claim: Claim, drain: DrainFacts): HostEventBody =>
  asWanted(claim, drain, true, ownReason(drain));

const changedByOthers = (claim: Claim, drain: DrainFacts, service: ComputeService | null): HostEventBody =>
  asWanted(claim, drain, false, service?.disabledReason ?? null);

/** The event for a request that certainly changed nothing; null: the error does not prove that. */
export function notChanged(claim: Claim, drain: DrainFacts, error: unknown): HostEventBody | null {
  if (error instanceof HttpError && error.status < 500) return failed(claim, drain, error.status, error.reason);
  if (error instanceof Unauthorized) return failed(claim, drain, 401, error.message);
  if (error instanceof NotSent) return failed(claim, drain, null, `it was not sent: ${error.reason}`);
  return null;
}

/** The next step for a disabled host. */
export type WatchStep =
  | { readonly do: 'wait' }
  /** Nova has to be asked whether a server is on it. */
  | { readonly do: 'look' }
  | { readonly do: 'write'; readonly event: HostEventBody };

/** @param moving whether a move from the host or to it is in flight */
export function watchStep(
  drain: DrainFacts,
  service: ComputeService | null,
  { moving }: { readonly moving: boolean },
): WatchStep {
  if (service === null || service.status === 'unknown') return { do: 'wait' };
  if (service.status === 'enabled') return { do: 'write', event: enabled(drain, false) };
  return drain.drained !== null || moving ? { do: 'wait' } : { do: 'look' };
}

const ownReason = ({ asked }: DrainFacts): string => disabledReasonOf(asked.commandId, asked.by, asked.comment);

const leftDisabled = (
  { asked, host }: DrainFacts,
  reason: ReasonOf<DrainReasonCode>,
  disabledReason: string | null,
): HostEventBody => ({
  type: 'host.leftDisabled',
  id: messageId.hostDrainEnded(asked.commandId),
  data: { drainId: asked.commandId, host, reason, disabledReason },
});

const enabled = ({ asked, host }: DrainFacts, byKronos: boolean): HostEventBody => ({
  type: 'host.enabled',
  id: messageId.hostDrainEnded(asked.commandId),
  data: { drainId: asked.commandId, host, byKronos },
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

function asWanted(
  { act, host }: Claim,
  drain: DrainFacts,
  byKronos: boolean,
  disabledReason: string | null,
): HostEventBody {
  if (act === 'enable') return enabled(drain, byKronos);
  const drainId = drain.asked.commandId;
  return {
    type: 'host.disabled',
    id: messageId.hostDisabled(drainId),
    data: { drainId, host, byKronos, disabledReason },
  };
}
