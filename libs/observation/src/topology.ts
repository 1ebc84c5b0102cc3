/** Which hosts an aggregate has, and what is known about each. Pure. */
import { byText, type HostObservation, type Reason, some, UNASSIGNED } from '@kronos/contracts';
import type { Aggregate, ComputeService, Hypervisor } from '@kronos/openstack';
import { matchesPattern } from '@kronos/rules';
import type { CloudLists, ObserveOptions } from './cloud.ts';
import { type NoteCode, note, problem, unread } from './reasons.ts';

/** A host without what Placement says about it. */
export type HostFacts = Omit<HostObservation, 'inventory' | 'traits' | 'topology'>;

export interface Topology {
  /** Hosts that count, by name. */
  readonly hosts: readonly HostFacts[];
  /** Hosts of the aggregate about which too little is known to count them; nothing may run there unseen. */
  readonly unknownHosts: readonly string[];
  /** The uuid of the aggregate, which its mirror in Placement has too; null for the unassigned pool. */
  readonly placementAggregate: string | null;
  readonly problems: readonly Reason[];
  readonly notes: readonly Reason[];
}

/** A name for people: the unassigned pool has none in Nova. */
const aggregateTitle = (aggregate: string): string =>
  aggregate === UNASSIGNED ? 'the pool of unassigned hosts' : `the aggregate ${JSON.stringify(aggregate)}`;

type Lists = Pick<CloudLists, 'aggregates' | 'services' | 'hypervisors'>;
type Options = Pick<ObserveOptions, 'hypervisorTypes' | 'cells'>;

/** The members of an aggregate by Nova's lists. */
interface Members {
  readonly uuid: string | null;
  readonly names: readonly string[];
  readonly aggregates: readonly Aggregate[];
  readonly hypervisors: ReadonlyMap<string, readonly Hypervisor[]>;
}

/** The members of an aggregate, or why they are unknown. */
function membersOf(
  lists: Lists,
  aggregate: string,
  cells: Options['cells'],
): Members | { readonly uuid: string | null; readonly unknown: readonly Reason[] } {
  if (!lists.aggregates.ok)
    return { uuid: null, unknown: [unread('aggregates-unknown', "Nova's aggregates", lists.aggregates)] };
  const aggregates = lists.aggregates.value;
  const own = aggregates.filter((one) => one.name === aggregate);
  if (aggregate !== UNASSIGNED && own.length === 0) {
    const text = `Nova has no aggregate ${JSON.stringify(aggregate)}; a renamed one must be renamed in [engine] aggregates too`;
    return { uuid: null, unknown: [problem('aggregate-not-found', text)] };
  }
  const uuid = own[0]?.uuid ?? null;
  if (!lists.hypervisors.ok) {
    const down = ofDownCell(lists, () => true, cells);
    return { uuid, unknown: [...down, unread('hypervisors-unknown', "Nova's hypervisors", lists.hypervisors)] };
  }
  const hypervisors = Map.groupBy(lists.hypervisors.value, (one) => one.service.host);
  const assigned = new Set(aggregates.flatMap((one) => one.hosts));
  // Nova names no hypervisors of a cell that is down: a host of the unassigned pool is known by its service then.
  const known = [...hypervisors.keys(), ...(lists.services.ok ? lists.services.value.map(({ host }) => host) : [])];
  const names = new Set(
    aggregate === UNASSIGNED ? known.filter((host) => !assigned.has(host)) : own.flatMap((one) => one.hosts),
  );
  return { uuid, names: [...names].sort(byText), aggregates, hypervisors };
}

/**
 * Hosts of a cell that Nova does not reach: which of its servers run is not known, and it fails to list the hypervisors of any cell.
 * `wanted` picks the hosts that concern the aggregate.
 */
function ofDownCell(lists: Lists, wanted: (host: string) => boolean, cells: Options['cells']): Reason[] {
  const services = lists.services.ok ? lists.services.value : [];
  const hosts = services.flatMap(({ host, cellDown }) => (cellDown && wanted(host) ? host : [])).sort(byText);
  if (hosts.length === 0) return [];
  const names = [...new Set(hosts.flatMap((host) => cellOf(cells, host) ?? []))];
  const which = names.length === 0 ? `the cell of ${some(hosts)}` : `${names.join(' and ')} (hosts ${some(hosts)})`;
  const text = `a cell is down: Nova does not reach the database of ${which}`;
  return [problem('hosts-of-down-cell', text, { hosts })];
}

/** The hypervisor by which a host counts, or why it does not count. */
type Counted =
  | { readonly kind: 'counts'; readonly hypervisor: Hypervisor }
  | { readonly kind: 'none' }
  | { readonly kind: 'ignored'; readonly type: string }
  | { readonly kind: 'several'; readonly names: readonly string[] };

function countedBy(all: readonly Hypervisor[], wanted: ReadonlySet<string>): Counted {
  const counted = all.filter((one) => wanted.has(one.hypervisorType.toUpperCase()));
  const [hypervisor, second] = counted;
  if (second !== undefined) return { kind: 'several', names: counted.map((one) => one.hypervisorHostname) };
  if (hypervisor !== undefined) return { kind: 'counts', hypervisor };
  const [other] = all;
  return other === undefined ? { kind: 'none' } : { kind: 'ignored', type: other.hypervisorType };
}

const severalHypervisors = (host: string, names: readonly string[]): Reason =>
  problem(
    'host-with-several-hypervisors',
    `the host ${host} has several hypervisors (${some(names)}), so its capacity and metrics cannot be told apart`,
    { host },
  );

function inSeveralAggregates(host: string, aggregates: readonly string[]): Reason {
  const names = aggregates.map((name) => JSON.stringify(name)).join(' and ');
  return problem(
    'host-in-two-aggregates',
    `the host ${host} is in ${names}, which are all in scope: take it out of all but one of them, or take the others out of [engine] aggregates`,
    { host, aggregates: [...aggregates] },
  );
}

const serviceFacts = (service: ComputeService | undefined): HostFacts['service'] =>
  service === undefined
    ? { status: 'unknown', state: 'unknown', forcedDown: false, disabledReason: null }
    : {
        status: service.status,
        state: service.state,
        forcedDown: service.forcedDown,
        disabledReason: service.disabledReason,
      };

/** A note that names hosts; none where there are none. */
const noteOf = (code: NoteCode, text: string, hosts: readonly string[], shown = hosts): Reason[] =>
  hosts.length === 0 ? [] : [note(code, `${text}: ${some(shown)}`, { hosts: [...hosts] })];

/**
 * The hosts of one aggregate in scope.
 *
 * A host counts when it has exactly one hypervisor of the wanted types. Its service is unknown when the services could not
 * be read or Nova has none for it; then no server may go there.
 */
export function topologyOf(lists: Lists, aggregate: string, scope: readonly string[], options: Options): Topology {
  const members = membersOf(lists, aggregate, options.cells);
  if ('unknown' in members)
    return { hosts: [], unknownHosts: [], placementAggregate: members.uuid, problems: members.unknown, notes: [] };
  const { aggregates, hypervisors } = members;
  const services = lists.services.ok ? new Map(lists.services.value.map((one) => [one.host, one])) : null;
  const wanted = new Set(options.hypervisorTypes.map((type) => type.toUpperCase()));
  const problems = ofDownCell(lists, (host) => members.names.includes(host), options.cells);
  const hosts: HostFacts[] = [];
  const withoutHypervisor: string[] = [];
  const ambiguous: string[] = [];
  const ignored: { host: string; type: string }[] = [];
  for (const host of members.names) {
    const counted = countedBy(hypervisors.get(host) ?? [], wanted);
    if (counted.kind === 'none') withoutHypervisor.push(host);
    else if (counted.kind === 'ignored') ignored.push({ host, type: counted.type });
    else if (counted.kind === 'several') {
      problems.push(severalHypervisors(host, counted.names));
      ambiguous.push(host);
    } else {
      const otherAggregates = aggregates
        .filter((one) => one.name !== aggregate && scope.includes(one.name) && one.hosts.includes(host))
        .map((one) => one.name)
        .sort(byText);
      if (otherAggregates.length > 0)
        problems.push(inSeveralAggregates(host, [aggregate, ...otherAggregates].sort(byText)));
      const { hypervisor } = counted;
      const service = services?.get(host);
      hosts.push({
        name: host,
        hypervisorHostname: hypervisor.hypervisorHostname,
        hypervisorId: hypervisor.id,
        hypervisorType: hypervisor.hypervisorType,
        hypervisorVersion: hypervisor.hypervisorVersion,
        availabilityZone: zoneOf(aggregates, host) ?? service?.zone ?? null,
        cell: cellOf(options.cells, host),
        service: serviceFacts(service),
        otherAggregates,
      });
    }
  }
  const withoutService = hosts.flatMap(({ name }) => (services === null || services.has(name) ? [] : [name]));
  const types = options.hypervisorTypes.join(', ');
  const notes = [
    ...(lists.services.ok
      ? []
      : [
          note(
            'services-unknown',
            `Nova's compute services could not be read, so no server may move: ${lists.services.text}`,
          ),
        ]),
    ...noteOf(
      'hypervisor-type-ignored',
      `not counted, as their hypervisors are not of the types ${types}`,
      ignored.map(({ host }) => host),
      ignored.map(({ host, type }) => `${host} (${type})`),
    ),
    ...noteOf('host-without-hypervisor', 'not counted, as Nova shows no hypervisor for them', withoutHypervisor),
    ...noteOf('host-without-service', 'no destination, as Nova has no compute service for them', withoutService),
    ...(hosts.length === 0 ? [note('aggregate-empty', `${aggregateTitle(aggregate)} has no hosts that count`)] : []),
  ];
  const unknownHosts = [...withoutHypervisor, ...ambiguous];
  return { hosts, unknownHosts, placementAggregate: members.uuid, problems, notes };
}

/** The zone that an aggregate's metadata gives a host; Nova lets a host be in one zone only. */
function zoneOf(
  aggregates: readonly {
    readonly availabilityZone: string | null;
    readonly hosts: readonly string[];
    readonly metadata: Readonly<Record<string, string>>;
  }[],
  host: string,
): string | null {
  for (const one of aggregates) {
    const zone = one.availabilityZone ?? one.metadata.availability_zone;
    if (zone !== undefined && one.hosts.includes(host)) return zone;
  }
  return null;
}

/** The cell of a host by the first pattern that it matches. */
export const cellOf = (cells: ObserveOptions['cells'], host: string): string | null =>
  cells.find(({ hosts }) => matchesAny(hosts, host))?.cell ?? null;

/** Whether a name matches one of these patterns, which have commas between them. */
export const matchesAny = (patterns: string, name: string): boolean =>
  patterns.split(',').some((pattern) => matchesPattern(pattern.trim(), name));
