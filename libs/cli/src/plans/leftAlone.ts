/** The broken server groups and the VMs on disabled hosts that a plan leaves as they are, because the options say so. Pure. */
import { count, type EngineOptions, type Snapshot } from '@kronos/contracts';
import type { ClusterFile, PlannedCluster } from '@kronos/placement';
import { brokenGroupOf, brokenGroupsText } from '@kronos/rules';
import { brokenGroups } from '../brokenGroups.ts';

const groupLine = (text: string): string =>
  `${text} ([engine] enforce_hard_affinity = false: Kronos does not repair them)\n`;

/** The broken groups of a snapshot. */
export function brokenGroupsLine(
  snapshot: Pick<Snapshot, 'notes'>,
  options: Pick<EngineOptions, 'enforceHardAffinity'>,
): string {
  const { brokenGroups: text } = brokenGroups(snapshot, options);
  return text === undefined ? '' : groupLine(text);
}

/** The groups and the disabled hosts that a plan for a cluster file leaves as they are. */
export function leftInFile(
  { hosts, vms, groups = [] }: Pick<ClusterFile, 'hosts' | 'vms' | 'groups'>,
  moves: PlannedCluster['moves'],
  { enforceHardAffinity, evacuateDisabledHosts }: Partial<EngineOptions>,
): string {
  const at = new Map(vms.map(({ id, host }) => [id, host]));
  for (const { vm, to } of moves) at.set(vm, to);
  const broken = groups.flatMap(({ id, policy, vms: members, maxServerPerHost: most = 1 }) => {
    const placed = members.map((name) => ({ name, host: at.get(name) ?? '' }));
    return brokenGroupOf({ policy, name: id, most }, placed) ?? [];
  });
  const onHost = Map.groupBy(at.values(), (host) => host);
  const kept = hosts.flatMap(({ id, status }) => {
    const left = onHost.get(id)?.length ?? 0;
    return status === 'disabled' && left > 0
      ? [
          `${id} is disabled, and ${count(left, 'VM')} ${left === 1 ? 'stays' : 'stay'} on it ([engine] evacuate_disabled_hosts = false)\n`,
        ]
      : [];
  });
  return [
    ...(enforceHardAffinity === true || broken.length === 0 ? [] : [groupLine(brokenGroupsText(broken))]),
    ...(evacuateDisabledHosts === true ? [] : kept),
  ].join('');
}
