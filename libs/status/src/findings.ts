import { clause, type ServiceName, serviceNames, streamNames } from '@kronos/contracts';
import {
  brokenHosts,
  inFlight,
  lateResizes,
  notAfterMs,
  optionsOf,
  remedyOf,
  skipText,
  undispatched,
} from '@kronos/projections';
import type { CauseCode, Place } from './causes.ts';
import { cellStage } from './cells.ts';
import type { AggregateInput, Facts, Heartbeat, NewestSnapshot, StreamFacts } from './facts.ts';
import { span, when } from './times.ts';

/** One thing that is not as it must be. {@link alarms} orders findings by cause. */
export type Finding = {
  readonly code: CauseCode;
  readonly place: Place;
  /** The place in words. */
  readonly about: string;
  readonly text: string;
  /** Where it differs from the cause's own. */
  readonly remedy?: string;
};

/** Time that a snapshot or a decision may take beyond its interval. */
const GRACE_MS = 2000;
/** A heartbeat is late after this many intervals: two may be lost. */
const HEARTBEATS_MISSED = 3;
/** A move that nobody started this long after it could be is a sign that no executor works. */
const UNSTARTED_MS = 120_000;
/** An attempt that runs for longer is followed by nobody, or Nova is stuck. */
const LONG_RUNNING_MS = 4 * 3_600_000;
/** If an abort has had no effect for this time, Nova refused it or no executor follows the move. */
const ABORT_MS = 120_000;
/** Released tasks reach the queue at once. */
const DISPATCH_MS = 60_000;
/** A stream with less room than this share of its limit refuses large messages. */
const FULL = 0.98;
const FILLING = 0.8;

const LOG_STREAM = streamNames.log;

/** Problems of a snapshot that say a list of Nova's could not be read. */
const UNREAD = new Set([
  'aggregates-unknown',
  'hypervisors-unknown',
  'servers-unknown',
  'server-groups-unknown',
  'migrations-unknown',
]);

/** Everything that is not as it must be, in no particular order. Pure. */
export function findings(facts: Facts): Finding[] {
  const { nats } = facts;
  if (nats.state !== 'ok') return [natsFinding(nats.state, nats.text)];
  return [
    // Services first: a refusal in the server's words says more than a figure.
    ...serviceFindings(facts),
    ...facts.streams.flatMap(streamFindings),
    ...clockFindings(facts),
    ...facts.aggregates.flatMap((input) => aggregateFindings(input, facts.nowMs)),
  ];
}

function natsFinding(state: Exclude<Facts['nats']['state'], 'ok'>, text: string): Finding {
  const code = {
    unreachable: 'nats-unreachable',
    refused: 'nats-refused',
    unavailable: 'jetstream-unavailable',
    notProvisioned: 'not-provisioned',
  } as const;
  return { code: code[state], place: {}, about: 'NATS', text };
}

function streamFindings({ stream, bytes, maxBytes, discard }: StreamFacts): Finding[] {
  if (maxBytes <= 0 || discard === 'old' || bytes <= FILLING * maxBytes) return [];
  const place = { stream };
  const percent = `${Math.floor((bytes / maxBytes) * 100)} %`;
  if (bytes < FULL * maxBytes)
    return [
      {
        code: 'stream-filling',
        place,
        about: stream,
        text: `is ${percent} full; a full stream accepts no messages`,
      },
    ];
  return [
    stream === LOG_STREAM
      ? { code: 'log-full', place, about: stream, text: `the event log is ${percent} full: nothing is planned` }
      : { code: 'stream-full', place, about: stream, text: `is ${percent} full: it accepts no messages` },
  ];
}

/** Whether this reader's clock, and those of the services, agree with the server's. */
function clockFindings({ aggregates, services, nowMs, maxClockSkewMs }: Facts): Finding[] {
  const heartbeats = services.known ? services.heartbeats : [];
  const stamps = [...heartbeats, ...aggregates.flatMap(({ newest }) => newest ?? [])].map((one) => one.storedAtMs);
  const aheadMs = Math.max(Number.NEGATIVE_INFINITY, ...stamps) - nowMs;
  const local: Finding[] =
    aheadMs > maxClockSkewMs
      ? [
          {
            code: 'local-clock',
            place: {},
            about: 'this machine',
            text: `its clock is at least ${span(aheadMs)} behind the NATS server's`,
          },
        ]
      : [];
  return [
    ...local,
    ...heartbeats.flatMap(({ service, instance, timeMs, storedAtMs }): Finding[] =>
      Math.abs(timeMs - storedAtMs) <= maxClockSkewMs
        ? []
        : [
            {
              code: 'clock-skew',
              place: { instance },
              about: `${service} ${instance}`,
              text: `its clock and the NATS server's differ by ${span(timeMs - storedAtMs)}, more than max_clock_skew`,
            },
          ],
    ),
  ];
}

export const isLate = ({ storedAtMs, intervalSeconds }: Heartbeat, nowMs: number): boolean =>
  nowMs - storedAtMs > HEARTBEATS_MISSED * intervalSeconds * 1000;

/** Instances that are at work, as far as their heartbeats say. */
export const alive = (heartbeats: readonly Heartbeat[], nowMs: number): Heartbeat[] =>
  heartbeats.filter((one) => one.state !== 'stopped' && !isLate(one, nowMs));

/** Which services an aggregate cannot do without. In a dry run with nothing left to move it needs no executor. */
function needed(service: ServiceName, input: AggregateInput): boolean {
  if (service !== 'executor') return true;
  return !optionsOf(input.state).dryRun || inFlight(input.state).length > 0;
}

function serviceFindings({ services, aggregates, nowMs }: Facts): Finding[] {
  if (!services.known)
    return [
      { code: 'services-unknown', place: {}, about: 'services', text: `their state is unknown: ${services.text}` },
    ];
  const living = alive(services.heartbeats, nowMs);
  return [
    ...serviceNames.flatMap((service) => missing(service, services.heartbeats, aggregates, nowMs)),
    ...living.flatMap(unready),
    ...living.flatMap(({ sinks }) => sinks.map((one) => failing(one, nowMs))),
    ...lost(services.heartbeats, living, nowMs),
    ...differences(living),
  ];
}

/** A receiver of notifications that takes none. */
const failing = ({ sink, sinceMs, reason }: Heartbeat['sinks'][number], nowMs: number): Finding => ({
  code: 'sink-failing',
  place: { sink },
  about: `[notify:${sink}]`,
  text: `has taken no notification since ${when(sinceMs, nowMs)}: ${reason}`,
});

/** Aggregates that no living instance of a service serves. */
function missing(
  service: ServiceName,
  heartbeats: readonly Heartbeat[],
  aggregates: readonly AggregateInput[],
  nowMs: number,
): Finding[] {
  const own = heartbeats.filter((one) => one.service === service);
  const living = alive(own, nowMs);
  const need = aggregates.filter((input) => needed(service, input)).map(({ aggregate }) => aggregate);
  const without = need.filter((aggregate) => !living.some((one) => one.aggregates.includes(aggregate)));
  if (without.length === 0) return [];
  if (living.length > 0)
    return without.map((aggregate) => ({
      code: 'service-missing',
      place: { service, aggregate },
      about: `${service} of ${aggregate}`,
      text: `no ${service} serves this aggregate`,
    }));
  const last = own.toSorted((a, b) => b.storedAtMs - a.storedAtMs)[0];
  const text =
    last === undefined
      ? 'no instance has sent a heartbeat recently'
      : last.state === 'stopped'
        ? `${last.instance} was stopped at ${when(last.storedAtMs, nowMs)}, and no other instance runs`
        : `${last.instance} sent its last heartbeat at ${when(last.storedAtMs, nowMs)}: it ended, hangs, or cannot reach NATS`;
  return [{ code: 'service-missing', place: { service }, about: service, text }];
}

/** Instances that ended without saying so, where others do their work. */
function lost(heartbeats: readonly Heartbeat[], living: readonly Heartbeat[], nowMs: number): Finding[] {
  return heartbeats.flatMap((one): Finding[] => {
    const { service, instance, storedAtMs } = one;
    if (one.state === 'stopped' || !isLate(one, nowMs)) return [];
    const others = living.filter((other) => other.service === service);
    if (!one.aggregates.every((aggregate) => others.some((other) => other.aggregates.includes(aggregate)))) return [];
    return [
      {
        code: 'replica-lost',
        place: { service, instance },
        about: service,
        text: `${instance} ended without an orderly stop; its last heartbeat was at ${when(storedAtMs, nowMs)}`,
      },
    ];
  });
}

/** Words of a NATS server that is out of storage as a whole, not only at the limit of one stream. */
const OUT_OF_STORAGE = /insufficient|resource limits|no space left|storage exceeded|\((10023|10028|10047)\)/i;

/** The causes that keep an instance from its work: its start or stop, and its failing checks, by their meaning. */
function unready({ service, instance, state, failing }: Heartbeat): Finding[] {
  const changing: Finding[] =
    state === 'running'
      ? []
      : [
          {
            code: 'service-unready',
            place: { service, instance, check: 'started' },
            about: `${service} ${instance}`,
            text: `is ${state}`,
          },
        ];
  const failed = failing.map(({ check, reason }): Finding => {
    const about = `${service} ${instance}`;
    const place = { service, instance };
    switch (check) {
      case 'openstack':
        return { code: 'openstack-unread', place, about: service, text: `OpenStack is not read: ${brief(reason)}` };
      case 'prometheus':
        return { code: 'prometheus-unread', place, about: service, text: `Prometheus is not read: ${brief(reason)}` };
      case 'identity':
        return { code: 'log-in-doubt', place: {}, about: LOG_STREAM, text: reason };
      case 'checkpoint':
        return { code: 'checkpoint-wrong', place: {}, about, text: reason };
      case 'options':
        return { code: 'options-conflict', place, about, text: reason };
      case 'clock':
        return { code: 'clock-skew', place: { instance }, about, text: reason };
      case 'appends':
        return OUT_OF_STORAGE.test(reason)
          ? { code: 'storage-full', place: {}, about: 'NATS', text: `the server is out of storage: ${reason}` }
          : reason.includes(LOG_STREAM) && /maximum bytes/.test(reason)
            ? { code: 'log-full', place: {}, about: LOG_STREAM, text: `the event log accepts no messages: ${reason}` }
            : { code: 'append-refused', place: {}, about, text: `NATS accepts no messages: ${reason}` };
      default:
        return {
          code: 'service-unready',
          place: { ...place, check },
          about,
          text: `is not ready: ${check}: ${reason}`,
        };
    }
  });
  return [...changing, ...failed];
}

/** The first of several parts of a reason, and how many more there are. */
function brief(reason: string): string {
  const [first = reason, ...rest] = reason.replace(/^not read: /, '').split('; ');
  return rest.length === 0 ? first : `${first} (and ${rest.length} more)`;
}

/** Replicas that work by different options, and services of different versions. */
function differences(living: readonly Heartbeat[]): Finding[] {
  const found: Finding[] = [];
  for (const [service, replicas] of Map.groupBy(living, (one) => one.service)) {
    const [first, ...others] = replicas;
    if (first === undefined) continue;
    const names = new Set(replicas.flatMap(({ options }) => Object.keys(options)));
    const differ = [...names].filter((name) =>
      others.some(({ options }) => JSON.stringify(options[name]) !== JSON.stringify(first.options[name])),
    );
    if (differ.length > 0)
      found.push({
        code: 'replicas-differ',
        place: { service },
        about: service,
        text: `its replicas have different options: ${differ.toSorted().join(', ')}`,
      });
  }
  const versions = [...new Set(living.map((one) => one.version))].toSorted();
  if (versions.length > 1)
    found.push({
      code: 'versions-differ',
      place: {},
      about: 'services',
      text: `several versions are running: ${versions.map((version) => `${version} (${[...new Set(living.flatMap((one) => (one.version === version ? [one.service] : [])))].join(', ')})`).join(', ')}`,
    });
  return found;
}

function aggregateFindings(input: AggregateInput, nowMs: number): Finding[] {
  return [
    ...observation(input, nowMs),
    ...(input.newest === null ? [] : seen(input.aggregate, input.newest)),
    ...decisions(input, nowMs),
    ...moves(input, nowMs),
  ];
}

/** Checks that each interval has a snapshot, and a decision on it. */
function observation({ aggregate, state, newest, undecidedSinceMs }: AggregateInput, nowMs: number): Finding[] {
  if (newest === null)
    return [
      { code: 'snapshot-none', place: { service: 'scorer', aggregate }, about: aggregate, text: 'has no snapshot yet' },
    ];
  const found: Finding[] = [];
  const intervalMs = newest.intervalSeconds * 1000;
  const ageMs = nowMs - newest.storedAtMs;
  if (ageMs > 2 * intervalMs + GRACE_MS)
    found.push({
      code: 'snapshot-late',
      place: { service: 'scorer', aggregate },
      about: aggregate,
      text: `the newest snapshot is ${span(ageMs)} old, and one is due every ${span(intervalMs)}`,
    });
  if (undecidedSinceMs !== null && nowMs - undecidedSinceMs > intervalMs + GRACE_MS)
    found.push({
      code: 'snapshot-undecided',
      place: { service: 'planner', aggregate },
      about: aggregate,
      text: `no snapshot was decided since ${when(undecidedSinceMs, nowMs)}; the last decision is ${state.decided === null ? 'missing' : `of ${when(state.decided.snapshotMs, nowMs)}`}`,
    });
  return found;
}

/** The findings of the newest snapshot about hosts and policies. */
function seen(aggregate: string, newest: NewestSnapshot): Finding[] {
  const found: Finding[] = [];
  for (const { code, text } of newest.problems)
    found.push(
      UNREAD.has(code)
        ? { code: 'openstack-unread', place: { service: 'scorer', aggregate }, about: aggregate, text: brief(text) }
        : { code: 'observation-problem', place: { aggregate, reason: code }, about: aggregate, text },
    );
  if (newest.outOfService === undefined)
    found.push({
      code: 'snapshot-unjudged',
      place: { aggregate },
      about: aggregate,
      text: 'the states of its hosts are unknown: an older scorer took the newest snapshot',
    });
  const states = {
    down: { code: 'host-down', text: 'is down' },
    forcedDown: { code: 'host-down', text: 'is forced down' },
    unknown: { code: 'host-unknown', text: 'is in an unknown state' },
    disabled: { code: 'host-disabled', text: 'is disabled' },
  } as const;
  for (const { state, count, hosts } of newest.outOfService ?? []) {
    const { code, text } = states[state];
    const sentence = `nova-compute ${text} (${count} of ${newest.hosts} hosts of ${aggregate})`;
    for (const host of hosts) found.push({ code, place: { aggregate, host }, about: host, text: sentence });
  }
  if (newest.abandoned !== undefined)
    found.push({ code: 'migration-abandoned', place: { aggregate }, about: aggregate, text: newest.abandoned.text });
  for (const { policy, participates, reason, matchedHosts, matchedServers } of newest.policies) {
    const place = { aggregate, policy };
    const about = `policy ${policy} in ${aggregate}`;
    if (!participates) found.push(skipped(place, about, reason?.code ?? null, reason?.text ?? 'for an unknown reason'));
    if (matchedHosts === 0 && newest.hosts > 0)
      found.push({ code: 'policy-no-host', place, about, text: `its query matches none of ${newest.hosts} hosts` });
    if (matchedServers === 0 && newest.servers > 0)
      found.push({ code: 'policy-no-server', place, about, text: `its query matches none of ${newest.servers} VMs` });
  }
  return found;
}

function skipped(place: Place, about: string, code: string | null, text: string): Finding {
  if (code === 'policy-no-destination') return { code, place, about, text };
  if (code === 'policy-unreachable')
    return {
      code: 'prometheus-unread',
      place: { ...place, service: 'scorer' },
      about: place.aggregate ?? about,
      text: `Prometheus is not read: ${text}`,
    };
  return { code: 'policy-skipped', place, about, text: `it is skipped: ${text}` };
}

function decisions({ aggregate, state, lastDecision }: AggregateInput, nowMs: number): Finding[] {
  const found: Finding[] = [];
  const { unreadable } = state;
  if (unreadable !== null)
    found.push({
      code: 'event-unreadable',
      place: { aggregate, event: String(unreadable.sequence) },
      about: aggregate,
      text: `event ${unreadable.sequence} (${unreadable.claimedType} version ${unreadable.claimedVersion ?? '?'}) cannot be read: ${unreadable.problem}. Nothing is planned`,
      remedy: `${remedyOf(unreadable)}.`,
    });
  if (state.skips.length > 0)
    found.push({
      code: 'event-skipped',
      place: { aggregate },
      about: aggregate,
      text: `unreadable events were skipped: ${state.skips.map(skipText).join('; ')}`,
    });
  for (const { id, release } of undispatched(state))
    if (release !== null && nowMs - release.atMs > DISPATCH_MS)
      found.push({
        code: 'plan-undispatched',
        place: { service: 'planner', aggregate, plan: id },
        about: aggregate,
        text: `the tasks of ${id} are not on the queue ${span(nowMs - release.atMs)} after the release`,
      });
  for (const { host, serverId, serverName, reason } of lastDecision?.stuck ?? [])
    found.push({
      code: 'server-stuck',
      place: { aggregate, host, server: serverId },
      about: aggregate,
      text: `${serverName} cannot leave ${host}: ${clause(reason.text)}`,
    });
  for (const { code, text, detail } of lastDecision?.warnings ?? []) {
    const server = typeof detail?.server === 'string' ? { server: detail.server } : {};
    found.push({ code: 'decision-warning', place: { aggregate, reason: code, ...server }, about: aggregate, text });
  }
  return found;
}

function moves({ aggregate, state }: AggregateInput, nowMs: number): Finding[] {
  const found: Finding[] = [];
  const options = optionsOf(state);
  const executor = { service: 'executor', aggregate };
  for (const plan of state.plans.values()) {
    const lastMs = notAfterMs(plan);
    if (lastMs !== null && nowMs > lastMs && plan.tasks.some((id) => state.tasks.get(id)?.end === null))
      found.push({
        code: 'plan-expired',
        place: { ...executor, plan: plan.id },
        about: aggregate,
        text: `${plan.id} has expired, but not all of its moves have ended`,
      });
  }
  const open = inFlight(state);
  for (const task of open) {
    const { slot } = task;
    const name = `${task.step.serverName} (${task.id})`;
    const place = { ...executor, task: task.id, server: task.step.serverId };
    const refused = slot?.abortRefused ?? null;
    if (refused !== null)
      found.push({
        code: 'abort-refused',
        place,
        about: aggregate,
        text: `Nova refused to abort ${name} at ${when(refused.atMs, nowMs)}: ${refused.text} (${refused.status})`,
      });
    const suspected = slot?.suspected ?? null;
    // The first try alone proves nothing: other tasks may have crashed the executor before it.
    if (suspected !== null && suspected.tries > 1)
      found.push({
        code: 'move-poisonous',
        place,
        about: aggregate,
        text: `${name} crashed its executor in isolation: try ${suspected.tries} started at ${when(suspected.atMs, nowMs)}`,
      });
    const asked = task.abortAsked ?? task.cancelAsked;
    if (slot !== null && asked !== null && nowMs - asked.atMs > ABORT_MS)
      found.push({
        code: 'abort-unanswered',
        place,
        about: aggregate,
        text: `${name} still migrates ${span(nowMs - asked.atMs)} after the abort request`,
      });
    if (slot !== null && nowMs - slot.startedAtMs > LONG_RUNNING_MS)
      found.push({
        code: 'move-long',
        place,
        about: aggregate,
        text: `${name} has been migrating since ${when(slot.startedAtMs, nowMs)}`,
      });
    if (slot?.forced === true)
      found.push({ code: 'move-forced', place, about: aggregate, text: `${name} was forced past the scheduler` });
  }
  for (const { task, host, sinceMs } of lateResizes(state, nowMs))
    found.push({
      code: 'resize-late',
      place: { ...executor, task: task.id, server: task.step.serverId },
      about: aggregate,
      text: `${task.step.serverName} (${task.id}) has been in VERIFY_RESIZE on ${host} since ${when(sinceMs, nowMs)}: it ${cellStage(task).text}`,
      remedy: `Check the guest, then run \`kronos cells confirm ${task.id}\` or \`kronos cells revert ${task.id}\`.`,
    });
  for (const { serverId, serverName, taskId, from, destination, host, reasons } of state.damaged.values())
    found.push({
      code: 'server-in-error',
      place: { aggregate, server: serverId, task: taskId },
      about: aggregate,
      text: `${serverName} is in ERROR on ${host ?? 'an unknown host'} after its move from ${from} to ${destination} (${taskId}): ${reasons[0]?.text ?? 'no reason is known'}`,
    });
  const paused = state.paused.here ?? state.paused.everywhere;
  const idle = open.length > 0 && open.every((task) => task.slot === null && nowMs - task.notBeforeMs > UNSTARTED_MS);
  if (idle && paused === null)
    found.push({
      code: 'task-unstarted',
      place: executor,
      about: aggregate,
      text: `no move has started ${span(UNSTARTED_MS)} after it was due`,
    });
  for (const { host, asked, undrainAsked, disabled, claim, failure } of state.drains.values()) {
    const act = disabled === null ? 'disabled' : 'enabled';
    const sinceMs = disabled === null ? asked.atMs : (undrainAsked?.atMs ?? nowMs);
    const blocked =
      failure !== null
        ? `its service cannot be ${act}${failure.status === null ? '' : ` (${failure.status})`}: ${failure.text}`
        : claim === null && paused === null && nowMs - sinceMs > UNSTARTED_MS
          ? `no executor has ${act} its service ${span(nowMs - sinceMs)} after the request`
          : null;
    if (blocked !== null) found.push({ code: 'drain-blocked', place: { aggregate, host }, about: host, text: blocked });
  }
  for (const { host, untilMs } of brokenHosts(state, nowMs, options))
    found.push({
      code: 'host-broken',
      place: { aggregate, host },
      about: host,
      text: `receives no VM until ${when(untilMs, nowMs)}: too many moves to it failed`,
    });
  return found;
}
