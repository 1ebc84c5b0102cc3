import type { SnapshotTaken } from './messages/snapshotTaken.ts';
import type { Policy } from './policy.ts';
import { hostQueryOf, hostReadingOf, vmQueryOf, vmReadingOf } from './queries.ts';
import { type HostObservation, NAMED_HOSTS, type Snapshot, type VmReading } from './snapshot.ts';

type Summary = Omit<SnapshotTaken['data'], 'body'>;
type OutOfService = NonNullable<Summary['outOfService']>[number];

/** The summary of a snapshot in its message: `kronos status` can judge it without the snapshot. */
export function summaryOf(snapshot: Snapshot): Summary {
  const { id, purpose, cycle, intervalSeconds, observedFrom, problems, scores } = snapshot;
  const noted = (wanted: string) => snapshot.notes.find(({ code }) => code === wanted);
  const [abandoned, brokenGroups] = [noted('migration-abandoned'), noted('group-broken')];
  const unreadPorts = noted('ports-unread');
  const byName = new Map(snapshot.policies.map((policy) => [policy.name, policy]));
  return {
    snapshotId: id,
    purpose,
    cycle,
    intervalSeconds,
    observedFrom,
    hosts: snapshot.hosts.length,
    servers: snapshot.servers.length,
    combined: scores.combined,
    policies: scores.policies.map(({ policy, participates, reason, imbalance, threshold, detected, sizes }) => ({
      policy,
      participates,
      reason,
      imbalance,
      threshold,
      detected,
      ...(sizes === undefined ? {} : { sizes }),
      ...profileSumOf(snapshot, policy),
      ...matched(snapshot, byName.get(policy)),
    })),
    outOfService: outOfService(snapshot.hosts),
    problems,
    ...(abandoned === undefined ? {} : { abandoned }),
    ...(brokenGroups === undefined ? {} : { brokenGroups }),
    ...(unreadPorts === undefined ? {} : { unreadPorts }),
  };
}

function profileSumOf({ profileSums = [] }: Snapshot, policy: string) {
  const profileSum = profileSums.find((one) => one.policy === policy);
  return profileSum === undefined ? {} : { profileSum };
}

function matched(snapshot: Snapshot, policy: Policy | undefined) {
  if (policy === undefined) return {};
  const hosts = hostReadingOf(snapshot.hostReadings, hostQueryOf(policy, 'imbalance'));
  const servers = vmReadingOf(snapshot.vmReadings, vmQueryOf(policy, 'vm_profile'));
  return {
    ...(hosts === undefined ? {} : { matchedHosts: Object.keys(hosts.values).length }),
    ...(servers === undefined ? {} : { matchedServers: Object.keys(servers.values).length }),
    ...(hosts?.cause === undefined ? {} : { hostCause: hosts.cause }),
    ...(servers?.cause === undefined && servers?.unused === undefined ? {} : { vms: vmsOf(servers) }),
  };
}

/** Characters of a text about VMs that a summary carries. */
const VMS_TEXT = 300;

const vmsOf = ({ cause, unused, text }: VmReading) => ({
  ...(cause === undefined ? {} : { cause }),
  text: text.slice(0, VMS_TEXT),
  ...(unused === undefined ? {} : { unused }),
});

function stateOf({ service }: HostObservation): OutOfService['state'] | null {
  if (service.forcedDown) return 'forcedDown';
  if (service.state === 'down') return 'down';
  if (service.state === 'unknown' || service.status === 'unknown') return 'unknown';
  return service.status === 'disabled' ? 'disabled' : null;
}

function outOfService(hosts: readonly HostObservation[]): OutOfService[] {
  return (['down', 'forcedDown', 'unknown', 'disabled'] as const).flatMap((state) => {
    const names = hosts.flatMap((host) => (stateOf(host) === state ? [host.name] : [])).sort();
    return names.length === 0 ? [] : [{ state, count: names.length, hosts: names.slice(0, NAMED_HOSTS) }];
  });
}
