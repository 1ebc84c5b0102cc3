import { byText, type HostObservation, type Snapshot, type Step, vmQueryOf, vmReadingOf } from '@kronos/contracts';
import { observed, pictureOf, policyRanges, rounded, valueAfter, valuesOfHost } from '@kronos/placement';
import type { ApiAnswer } from './schemas.ts';

/** A snapshot as people read it: values in six significant digits, in the order of the policies. Pure. */

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => byText(a.name, b.name);

type Counted = NonNullable<HostObservation['inventory']>[string];
/** The amounts of the resources that people ask about; null: Placement does not say. */
const resourcesOf = ({ inventory }: HostObservation, of: (counted: Counted) => number) => {
  const value = (resource: string): number | null => {
    const counted = inventory?.[resource];
    return counted === undefined ? null : of(counted);
  };
  return { vcpus: value('VCPU'), ramMb: value('MEMORY_MB'), diskGb: value('DISK_GB') };
};

/** Adds to each policy the resource that its values are shares of. */
const measured = <T extends { readonly policy: string }>(policies: readonly T[], { policies: own }: Snapshot) =>
  policies.map((policy) => ({
    ...policy,
    allocation: own.find(({ name }) => name === policy.policy)?.allocation ?? null,
  }));

export function hostsAnswer(snapshot: Snapshot): ApiAnswer<'hosts'> {
  const { aggregate, scores, problems, servers } = snapshot;
  const vms = Map.groupBy(servers, ({ host }) => host);
  return {
    aggregate,
    snapshot: observed(snapshot),
    combined: scores.combined,
    policies: measured(policyRanges(snapshot), snapshot),
    problems,
    hosts: snapshot.hosts
      .map((host) => ({
        name: host.name,
        zone: host.availabilityZone,
        service: host.service,
        vms: vms.get(host.name)?.length ?? 0,
        values: valuesOfHost(snapshot, host.name).map(rounded),
        free: resourcesOf(host, ({ capacity, used }) => capacity - used),
        capacity: resourcesOf(host, ({ capacity }) => capacity),
      }))
      .sort(byName),
  };
}

export type VmFilter = {
  readonly host: string | null;
  readonly id: string | null;
  readonly limit: number;
  /** Name and id of the last VM of the page before; null: from the start. */
  readonly after: string | null;
};

/** Orders VMs by name and tells those of one name apart. */
const placeOf = ({ name, id }: { readonly name: string; readonly id: string }): string => `${name} ${id}`;

export function vmsAnswer(snapshot: Snapshot, { host, id, limit, after }: VmFilter): ApiAnswer<'vms'> {
  const { aggregate, policies, vmReadings } = snapshot;
  const scored = policies.filter(({ name }) => snapshot.scores.policies.some(({ policy }) => policy === name));
  const readings = scored.map((policy) => vmReadingOf(vmReadings, vmQueryOf(policy, 'vm_profile')));
  const wanted = snapshot.servers
    .filter((server) => (host === null || server.host === host) && (id === null || server.id === id))
    .map((server) => ({ server, place: placeOf(server) }))
    .sort((a, b) => byText(a.place, b.place));
  const rest = after === null ? wanted : wanted.filter(({ place }) => place > after);
  const page = rest.slice(0, limit);
  return {
    aggregate,
    snapshot: observed(snapshot),
    policies: scored.map(({ name }) => name),
    total: wanted.length,
    vms: page.map(({ server }) => ({
      id: server.id,
      name: server.name,
      host: server.host,
      status: server.status,
      taskState: server.taskState,
      locked: server.locked,
      optedOutBy: server.optedOutBy,
      flavor: server.flavor,
      vcpus: server.vcpus,
      ramMb: server.ramMb,
      diskGb: server.diskGb,
      values: readings.map((reading) => rounded(reading?.values[server.id])),
    })),
    next: rest.length > limit ? (page.at(-1)?.place ?? null) : null,
  };
}

/** Hosts and VMs to be drawn. */
export function pictureAnswer(snapshot: Snapshot): ApiAnswer<'picture'> {
  const picture = pictureOf(snapshot);
  return { ...picture, policies: measured(picture.policies, snapshot) };
}

/** The hosts that these steps change: their values in the snapshot, and with every step done. */
export function planHostsAnswer(snapshot: Snapshot, planId: string, steps: readonly Step[]): ApiAnswer<'planHosts'> {
  const { scores } = snapshot;
  const vms = Map.groupBy(snapshot.servers, ({ host }) => host);
  const names = new Set(steps.flatMap(({ from, to }) => [from, to]));
  const hosts = [...names].map((name) => {
    const before = valuesOfHost(snapshot, name);
    const leaving = steps.filter(({ from }) => from === name);
    const arriving = steps.filter(({ to }) => to === name);
    const after = before.map((value, i) =>
      value === null ? null : valueAfter(value, { host: name, policy: scores.policies[i]?.policy ?? '' }, steps),
    );
    const vmsBefore = vms.get(name)?.length ?? 0;
    return {
      name,
      before: before.map(rounded),
      after: after.map(rounded),
      vmsBefore,
      vmsAfter: vmsBefore - leaving.length + arriving.length,
      leaving: leaving.map(({ step }) => step),
      arriving: arriving.map(({ step }) => step),
    };
  });
  return {
    aggregate: snapshot.aggregate,
    planId,
    snapshot: observed(snapshot),
    policies: scores.policies.map(({ policy, threshold }) => ({ policy, threshold })),
    hosts: hosts.sort(byName),
  };
}
