/** Which hosts an aggregate has, and what is known about each. Pure. */
import { byText, type HostObservation, type Reason, some, UNASSIGNED } from '@kronos/contracts';
import type { ComputeService } from '@kronos/openstack';
import type { CloudLists, ObserveOptions } from './cloud.ts';
import { note, problem, unread } from './reasons.ts';

/** A host without what Placement says about it. */
export type HostFacts = Omit<HostObservation, 'inventory' | 'traits' | 'topology'>;

export interface Topology {
  /** Hosts that count, by name. */
  readonly hosts: readonly HostFacts[];
  /** Hosts of the aggregate about which too little is known to count them; nothing may run there unseen. */
  readonly unknownHosts: readonly string[];
  /** The uuid of the aggregate, which its mirror in Placement has too; null for the pool of unassigned hosts. */
  readonly placementAggregate: string | null;
  readonly problems: readonly Reason[];
  readonly notes: readonly Reason[];
}

/** A name for people: the pool of unassigned hosts has none in Nova. */
const aggregateTitle = (aggregate: string): string =>
  aggregate === UNASSIGNED ? 'the pool of unassigned hosts' : `the aggregate ${JSON.stringify(aggregate)}`;

/**
 * The hosts of one aggregate in scope.
 *
 * A host counts when it has exactly one hypervisor of the wanted types. Its service is unknown when the services could not
 * be read or Nova has none for it; then no server may go there.
 */
export function hostsOf(
  lists: Pick<CloudLists, 'aggregates' | 'services' | 'hypervisors'>,
  aggregate: string,
  scope: readonly string[],
  options: Pick<ObserveOptions, 'hypervisorTypes' | 'cells'>,
): Topology {
  const problems: Reason[] = [];
  const notes: Reason[] = [];
  const end = (hosts: readonly HostFacts[], unknownHosts: readonly string[], uuid: string | null): Topology => ({
    hosts,
    unknownHosts,
    placementAggregate: uuid,
    problems,
    notes,
  });

  if (!lists.aggregates.ok) {
    problems.push(unread('aggregates-unknown', "Nova's aggregates", lists.aggregates));
    return end([], [], null);
  }
  const aggregates = lists.aggregates.value;
  const own = aggregates.filter((one) => one.name === aggregate);
  if (aggregate !== UNASSIGNED && own.length === 0) {
    problems.push(
      problem(
        'aggregate-not-found',
        `Nova has no aggregate ${JSON.stringify(aggregate)}; a renamed one must be renamed in [engine] aggregates too`,
      ),
    );
    return end([], [], null);
  }
  const uuid = own[0]?.uuid ?? null;
  if (!lists.hypervisors.ok) {
    problems.push(unread('hypervisors-unknown', "Nova's hypervisors", lists.hypervisors));
    return end([], [], uuid);
  }
  const hypervisors = Map.groupBy(lists.hypervisors.value, (one) => one.service.host);
  const assigned = new Set(aggregates.flatMap((one) => one.hosts));
  const members =
    aggregate === UNASSIGNED
      ? [...hypervisors.keys()].filter((host) => !assigned.has(host))
      : [...new Set(own.flatMap((one) => one.hosts))];

  let services: ReadonlyMap<string, ComputeService> | null = null;
  if (lists.services.ok) services = new Map(lists.services.value.map((one) => [one.host, one]));
  else
    notes.push(
      note(
        'services-unknown',
        `Nova's compute services could not be read, so no server may move: ${lists.services.text}`,
      ),
    );

  const wanted = new Set(options.hypervisorTypes.map((type) => type.toUpperCase()));
  const hosts: HostFacts[] = [];
  const withoutHypervisor: string[] = [];
  const ambiguous: string[] = [];
  const ignored: { host: string; type: string }[] = [];
  const withoutService: string[] = [];
  for (const host of members.sort(byText)) {
    const all = hypervisors.get(host) ?? [];
    const counted = all.filter((one) => wanted.has(one.hypervisorType.toUpperCase()));
    const [hypervisor, second] = counted;
    if (hypervisor === undefined) {
      const [other] = all;
      if (other === undefined) withoutHypervisor.push(host);
      else ignored.push({ host, type: other.hypervisorType });
      continue;
    }
    if (second !== undefined) {
      problems.push(
        problem(
          'host-with-several-hypervisors',
          `the host ${host} has several hypervisors (${some(counted.map((one) => one.hypervisorHostname))}), so its capacity and metrics cannot be told apart`,
          { host },
        ),
      );
      ambiguous.push(host);
      continue;
    }
    const otherAggregates = aggregates
      .filter((one) => one.name !== aggregate && scope.includes(one.name) && one.hosts.includes(host))
      .map((one) => one.name)
      .sort(byText);
    if (otherAggregates.length > 0) {
      const all = [aggregate, ...otherAggregates].sort(byText);
      problems.push(
        problem(
          'host-in-two-aggregates',
          `the host ${host} is in ${all.map((name) => JSON.stringify(name)).join(' and ')}, which are all in scope: take it out of all but one of them, or take the others out of [engine] aggregates`,
          { host, aggregates: all },
        ),
      );
    }
    const service = services?.get(host);
    if (services !== null && service === undefined) withoutService.push(host);
    hosts.push({
      name: host,
      hypervisorHostname: hypervisor.hypervisorHostname,
      hypervisorId: hypervisor.id,
      hypervisorType: hypervisor.hypervisorType,
      hypervisorVersion: hypervisor.hypervisorVersion,
      availabilityZone: zoneOf(aggregates, host) ?? service?.zone ?? null,
      cell: cellOf(options.cells, host),
      service:
        service === undefined
          ? { status: 'unknown', state: 'unknown', forcedDown: false, disabledReason: null }
          : {
              status: service.status,
              state: service.state,
              forcedDown: service.forcedDown,
              disabledReason: service.disabledReason,
            },
      otherAggregates,
    });
  }

  if (ignored.length > 0) {
    notes.push(
      note(
        'hypervisor-type-ignored',
        `not counted, as their hypervisors are not of the types ${options.hypervisorTypes.join(', ')}: ${some(ignored.map((one) => `${one.host} (${one.type})`))}`,
        { hosts: ignored.map((one) => one.host) },
      ),
    );
  }
  if (withoutHypervisor.length > 0) {
    notes.push(
      note('host-without-hypervisor', `not counted, as Nova shows no hypervisor for them: ${some(withoutHypervisor)}`, {
        hosts: withoutHypervisor,
      }),
    );
  }
  if (withoutService.length > 0) {
    notes.push(
      note('host-without-service', `no destination, as Nova has no compute service for them: ${some(withoutService)}`, {
        hosts: withoutService,
      }),
    );
  }
  if (hosts.length === 0) notes.push(note('aggregate-empty', `${aggregateTitle(aggregate)} has no hosts that count`));
  return end(hosts, [...withoutHypervisor, ...ambiguous], uuid);
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

/** The cell of a host by the first pattern that fits. */
export const cellOf = (cells: ObserveOptions['cells'], host: string): string | null =>
  cells.find(({ hosts }) => fitsPattern(hosts, host))?.cell ?? null;

/** Whether a name fits one of these patterns; `*` stands for any characters, a comma separates patterns. */
export function fitsPattern(patterns: string, name: string): boolean {
  return patterns.split(',').some((one) => {
    const pattern = one
      .trim()
      .split('*')
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
      .join('.*');
    return new RegExp(`^${pattern}$`, 's').test(name);
  });
}
