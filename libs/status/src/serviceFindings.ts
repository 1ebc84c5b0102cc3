import { partCodes, type ServiceName, serviceNames, some, streamNames } from '@kronos/contracts';
import { inFlight, optionsOf } from '@kronos/projections';
import type { CauseCode } from './causes.ts';
import type { AggregateInput, Facts, Heartbeat } from './facts.ts';
import type { Finding } from './finding.ts';
import { span, when } from './times.ts';

/** A heartbeat is late after this many intervals: two may be lost. */
const HEARTBEATS_MISSED = 3;

/** Codes of errors that say that the credentials are refused. */
const UNAUTHORIZED: ReadonlySet<string> = new Set([
  'KRONOS_OPENSTACK_UNAUTHORIZED',
  'KRONOS_OPENSTACK_FORBIDDEN',
  'KRONOS_PROMETHEUS_UNAUTHORIZED',
]);

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

export function serviceFindings({ services, aggregates, nowMs }: Facts): Finding[] {
  if (!services.known)
    return [
      { code: 'services-unknown', place: {}, about: 'services', text: `their state is unknown: ${services.text}` },
    ];
  const living = alive(services.heartbeats, nowMs);
  return [
    ...serviceNames.flatMap((service) => missing(service, services.heartbeats, aggregates, nowMs)),
    ...living.flatMap((one) => unready(one, nowMs)),
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
  if (living.length > 0) return without.map((aggregate) => unserved({ service, aggregate }, own, nowMs));
  return [{ code: 'service-missing', place: { service }, about: service, text: silence(own, nowMs) }];
}

/** An aggregate that none of the instances that live serves: those that did have ended, or none has it in its configuration. */
function unserved(
  { service, aggregate }: { readonly service: ServiceName; readonly aggregate: string },
  own: readonly Heartbeat[],
  nowMs: number,
): Finding {
  const finding = {
    code: 'service-missing',
    place: { service, aggregate },
    about: `${service} of ${aggregate}`,
  } as const;
  const before = own.filter((one) => one.aggregates.includes(aggregate));
  if (before.length > 0) return { ...finding, text: silence(before, nowMs, 'serves this aggregate') };
  const served = [...new Set(alive(own, nowMs).flatMap((one) => one.aggregates))].sort();
  return {
    ...finding,
    text: `no instance serves this aggregate: those that run serve ${some(served)}`,
    remedy:
      'Name the aggregate in [engine] aggregates of the kronos.conf that the services read, and restart them; or correct its name in the kronos.conf of this command. `kronos config check` lists the aggregates of Nova.',
  };
}

/** The words of the last heartbeats of a service of which no instance lives. */
function silence(heartbeats: readonly Heartbeat[], nowMs: number, does = 'runs'): string {
  const newest = heartbeats.toSorted((a, b) => b.storedAtMs - a.storedAtMs);
  const [last] = newest;
  if (last === undefined) return 'no instance has sent a heartbeat recently';
  const at = when(last.storedAtMs, nowMs);
  if (last.state === 'stopped') return `${last.instance} was stopped at ${at}, and no other instance ${does}`;
  const silent = newest.filter(({ state }) => state !== 'stopped').map(({ instance }) => instance);
  return silent.length === 1
    ? `${last.instance} sent its last heartbeat at ${at}: it ended, hangs, or cannot reach NATS`
    : `${some(silent)} ended, hang, or cannot reach NATS: the last heartbeat came at ${at}`;
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

/** The causes that keep an instance from its work: its start or stop, and its failing checks, by the codes of their parts. */
function unready(beat: Heartbeat, nowMs: number): Finding[] {
  const { service, instance, state, failing } = beat;
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
  return [
    ...changing,
    ...failing.flatMap((one) => {
      const own = ownCauses(beat, one);
      return own.length > 0 ? own : [failed(beat, one, nowMs)];
    }),
  ];
}

type Failing = Heartbeat['failing'][number];
type Part = NonNullable<Failing['parts']>[number];

/** By the code of a part that is a cause of its own: its finding, of the aggregate that the part names or of the service. */
const OWN_CAUSES: Readonly<Record<string, { readonly code: CauseCode; readonly ofService?: true }>> = {
  [partCodes.decisionSlow]: { code: 'decision-slow' },
  [partCodes.storedLate]: { code: 'snapshot-stored-late' },
  [partCodes.cycleSlow]: { code: 'cycle-slow', ofService: true },
};

const ownCauses = ({ service, instance }: Heartbeat, { parts = [] }: Failing): Finding[] =>
  parts.flatMap(({ code: ofPart, part: aggregate, text }): Finding[] => {
    const cause = OWN_CAUSES[ofPart];
    if (cause === undefined) return [];
    const { code, ofService } = cause;
    return ofService
      ? [{ code, place: { service, instance }, about: service, text }]
      : [{ code, place: { service, instance, aggregate }, about: aggregate, text }];
  });

/** The finding of a failing check. */
function failed({ service, instance }: Heartbeat, one: Failing, nowMs: number): Finding {
  const { check, reason } = one;
  const about = `${service} ${instance}`;
  const place = { service, instance };
  switch (check) {
    case 'openstack':
      return { ...unread('openstack', one, nowMs), place, about: service };
    case 'prometheus':
      return { ...unread('prometheus', one, nowMs), place, about: service };
    case 'identity':
      return { code: 'log-in-doubt', place: {}, about: streamNames.log, text: reason };
    case 'checkpoint':
      return { code: 'checkpoint-wrong', place: {}, about, text: reason };
    case 'options':
      return { code: 'options-conflict', place, about, text: reason };
    case 'clock':
      return { code: 'clock-skew', place: { instance }, about, text: reason };
    case 'appends':
      return { ...unstored(one), about: service };
    default:
      return { code: 'service-unready', place: { ...place, check }, about, text: `is not ready: ${check}: ${reason}` };
  }
}

const API_NAMES: Readonly<Record<string, string>> = {
  keystone: 'Keystone',
  nova: 'Nova',
  placement: 'Placement',
  neutron: 'Neutron',
  prometheus: 'Prometheus',
};

/** An API that cannot be read: refused credentials first, then calls that hang, then the first failure. */
function unread(
  api: 'openstack' | 'prometheus',
  { reason, parts = [] }: Failing,
  nowMs: number,
): Pick<Finding, 'code' | 'text'> {
  const refused = parts.find(({ code }) => UNAUTHORIZED.has(code));
  if (refused !== undefined) return { code: `${api}-refused`, text: refused.text };
  const hanging = parts.filter(({ code }) => code === partCodes.callInProgress);
  if (hanging.length > 0) return { code: `${api}-unread`, text: hanging.map((one) => hangs(one, nowMs)).join('; ') };
  const [first] = parts;
  const others = new Set(parts.map(({ text }) => text)).size - 1;
  const more = others > 0 ? ` (and ${others} more)` : '';
  const what = api === 'openstack' ? 'OpenStack' : 'Prometheus';
  return { code: `${api}-unread`, text: `${what} is not read: ${first?.text ?? reason}${more}` };
}

function hangs({ part, text, sinceMs }: Part, nowMs: number): string {
  const age = sinceMs === null ? '' : ` for ${span(nowMs - sinceMs)}`;
  return `${API_NAMES[part] ?? part} has not answered ${text}${age}`;
}

/** Why NATS does not store, the widest cause first. */
function unstored({ reason, parts = [] }: Failing): Pick<Finding, 'code' | 'place' | 'text'> {
  const of = (code: string): Part | undefined => parts.find((one) => one.code === code);
  const server = of(partCodes.storageFull);
  if (server !== undefined)
    return { code: 'storage-full', place: {}, text: `the NATS server is out of storage: ${server.text}` };
  const full = of(partCodes.streamFull);
  if (full?.part === streamNames.log)
    return { code: 'log-full', place: {}, text: `the event log accepts no messages: ${full.text}` };
  if (full !== undefined)
    return {
      code: 'stream-full',
      place: { stream: full.part },
      text: `${full.part} accepts no messages: ${full.text}`,
    };
  const silent = of(partCodes.unanswered);
  if (silent !== undefined)
    return { code: 'append-refused', place: {}, text: `NATS does not store: ${silent.part}: ${silent.text}` };
  return { code: 'append-refused', place: {}, text: `NATS accepts no messages: ${reason}` };
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
