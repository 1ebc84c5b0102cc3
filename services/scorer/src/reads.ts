/** The scorer's failing reads: the readiness checks `openstack` and `prometheus`, and the log lines of calls that hang. Pure. */

import type { CallInProgress } from '@kronos/connect';
import { type FailingPart, iso, partCodes } from '@kronos/contracts';
import {
  type Capacity,
  type CloudLists,
  cellOf,
  type Fetched,
  type ObserveOptions,
  type QueryAnswer,
} from '@kronos/observation';
import { type Check, checkOf } from '@kronos/telemetry';

/** A call that takes longer is reported, unless cycles are longer: then half of one. */
const HANGING_MS = 15_000;

/** How long a call may take before it is reported. */
export const hangingAfterMs = (intervalMs: number): number => Math.max(HANGING_MS, intervalMs / 2);

/** A call that is not answered yet. */
export interface HangingCall {
  /** `nova`, `placement`, `neutron`, `keystone`, `prometheus`. */
  readonly service: string;
  /** `GET /servers/detail`, with the host and its cell where the call names a host. */
  readonly call: string;
  readonly ageMs: number;
  readonly attempt: number;
  readonly lastFailure: string | null;
}

const HOST_PARAMETERS = ['host', 'source_compute'];

/** The calls that have been under way for longer than `afterMs`: of each API the oldest. */
export function hangingCalls(
  calls: readonly CallInProgress[],
  now: { readonly monotonicMs: number; readonly afterMs: number },
  cells: ObserveOptions['cells'],
): HangingCall[] {
  const found = new Map<string, HangingCall>();
  for (const { service, method, route, url, sinceMs, attempt, lastFailure } of calls) {
    const ageMs = now.monotonicMs - sinceMs;
    if (ageMs <= now.afterMs || ageMs <= (found.get(service)?.ageMs ?? 0)) continue;
    found.set(service, { service, call: `${method} ${route}${whose(url, cells)}`, ageMs, attempt, lastFailure });
  }
  return [...found.values()];
}

/** ` of host cmp7 (cell c2)` where a call is about one host. */
function whose(url: string, cells: ObserveOptions['cells']): string {
  const parameters = URL.canParse(url) ? new URL(url).searchParams : new URLSearchParams();
  const host = HOST_PARAMETERS.map((name) => parameters.get(name)).find((value) => value !== null) ?? null;
  if (host === null) return '';
  const cell = cellOf(cells, host);
  return ` of host ${host}${cell === null ? '' : ` (cell ${cell})`}`;
}

/** `placement has not answered GET /allocation_candidates for 45 s`, with the attempts before. */
export function hangingText({ service, call, ageMs, attempt, lastFailure }: HangingCall): string {
  const before = lastFailure === null ? '' : ` (attempt ${attempt}; the one before: ${lastFailure})`;
  return `${service} has not answered ${call} for ${Math.round(ageMs / 1000)} s${before}`;
}

const hangingPart = (one: HangingCall, nowMs: number): FailingPart => ({
  code: partCodes.callInProgress,
  part: one.service,
  text: one.call,
  since: iso(nowMs - one.ageMs),
});

/** The results of the last reads of the cloud. */
export interface CloudReads {
  /** Null: nothing was read yet. */
  readonly lists: CloudLists | null;
  /** By aggregate, the last reading of its capacity. */
  readonly capacities: ReadonlyMap<string, Pick<Capacity, 'failure'>>;
}

/** Whether OpenStack can be read: calls that hang now, then the lists and capacities that could not be read last. */
export function openstackCheck(reads: CloudReads, hanging: readonly HangingCall[], nowMs: number): Check {
  const own = hanging.filter(({ service }) => service !== 'prometheus');
  const unread = Object.entries(reads.lists ?? {}).flatMap(([part, list]: [string, Fetched<unknown>]) =>
    list.ok ? [] : [{ code: list.code, part, text: list.text }],
  );
  const capacity = [...reads.capacities].flatMap(([aggregate, { failure }]) =>
    failure === null ? [] : [{ code: failure.code, part: `capacity of ${aggregate}`, text: failure.text }],
  );
  const texts = new Map(own.map((one) => [one.service, hangingText(one)]));
  return checkOf([...own.map((one) => hangingPart(one, nowMs)), ...unread, ...capacity], ({ code, part, text }) =>
    code === partCodes.callInProgress ? (texts.get(part) ?? text) : `${part}: ${text}`,
  );
}

/** Whether Prometheus can be read. A query that it refuses is a fault of its policy, which the snapshot reports. */
export function prometheusCheck(
  answers: readonly Pick<QueryAnswer, 'query' | 'failure'>[],
  hanging: readonly HangingCall[],
  nowMs: number,
): Check {
  const own = hanging.filter(({ service }) => service === 'prometheus');
  const failed = answers.flatMap(({ query, failure }) =>
    failure?.kind === 'unreachable' ? [{ code: failure.code, part: query, text: failure.text }] : [],
  );
  const [call] = own;
  return checkOf([...own.map((one) => hangingPart(one, nowMs)), ...failed.slice(0, 1)], ({ code, text }) =>
    code === partCodes.callInProgress && call !== undefined ? hangingText(call) : text,
  );
}
