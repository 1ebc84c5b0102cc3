/** Nova's scheduler, and the checks of its choice by the computes. */

import { currentMove } from './migrations.ts';
import type { Flavor, Host, Resources, Server } from './model.ts';
import { placeCells } from './numa.ts';
import { byFreeMemory, hostHasRoom, serverClaim } from './placement.ts';
import { hostFault, serverFault } from './settings.ts';
import type { CloudState } from './state.ts';

/** The scheduler's message when its filters left no host, and when Placement already had none. */
export const NO_HOST = 'No valid host was found. There are not enough hosts available.';
const NO_ROOM = 'No valid host was found. ';

/** The scheduler's answer: the host it chose, or the sentence with which it gives up. */
export function chooseHost(
  s: CloudState,
  server: Server,
  { requested, forced }: { readonly requested: string | null; readonly forced: boolean },
  { flavor, crossCell }: { readonly flavor: Flavor; readonly crossCell: boolean } = {
    flavor: server.flavor,
    crossCell: false,
  },
): Host | string {
  const source = s.host(server.host);
  if (!s.isUp(source)) return `Compute service of ${source.name} is unavailable at this time.`;
  if (forced && requested !== null) return forcedHost(s, server, s.host(requested), serverClaim(server, flavor));
  const asked = requested === null ? [...s.hosts.values()] : [s.host(requested)];
  const takes = placementTakes(s, server, flavor);
  const room = asked.filter((host) => (crossCell || host.cell === source.cell) && takes(host));
  const candidates = room.filter(
    (host) =>
      // The filters' part.
      host !== source &&
      s.isUp(host) &&
      groupAllows(s, server, host, s.scenario.schedulers === 1 ? 'arrivals' : 'present') &&
      filtersAllow(s, flavor, host) &&
      // The conductor's own comparison: a host that fails it is skipped, and with it the last one may be gone.
      host.hypervisorType === source.hypervisorType &&
      host.hypervisorVersion >= source.hypervisorVersion,
  );
  // Nova's cross-cell weigher prefers the server's own cell; then its RAM weigher.
  const foreign = (host: Host): number => (host.cell === source.cell ? 0 : 1);
  const [best] = candidates.sort((a, b) => foreign(a) - foreign(b) || byFreeMemory(a, b));
  return best ?? (room.length > 0 ? NO_HOST : NO_ROOM);
}

/** The conductor's answer to a host that the scheduler is not asked about. */
function forcedHost(s: CloudState, server: Server, dest: Host, wanted: Resources): Host | string {
  if (dest.name === server.host) return `Unable to migrate instance (${server.uuid}) to current host (${dest.name}).`;
  if (!s.isUp(dest)) return `Compute service of ${dest.name} is unavailable at this time.`;
  if (hostHasRoom(dest, wanted)) return dest;
  return (
    `No valid host was found. Unable to move instance ${server.uuid} to host ${dest.name}. ` +
    'There is not enough capacity on the host for the instance.'
  );
}

/** Placement's part: capacity, traits, disabled services and availability zones. */
function placementTakes(s: CloudState, server: Server, flavor: Flavor): (host: Host) => boolean {
  const wanted = serverClaim(server, flavor);
  const required = Object.entries(flavor.extraSpecs).flatMap(([key, value]) =>
    key.startsWith('trait:') && value === 'required' ? key.slice('trait:'.length) : [],
  );
  return (host) =>
    !host.disabled &&
    hostHasRoom(host, wanted) &&
    required.every((trait) => host.traits.includes(trait)) &&
    (server.pinnedZone === null || s.zoneOf(host.name) === server.pinnedZone);
}

/** The host of a server that is on none: the first of its cell that takes it. */
export function hostForShelved(s: CloudState, server: Server): Host | undefined {
  const cell = s.cellOf(server);
  const takes = placementTakes(s, server, server.flavor);
  return [...s.hosts.values()].find(
    (host) =>
      host.cell === cell &&
      s.isUp(host) &&
      takes(host) &&
      groupAllows(s, server, host, 'present') &&
      placeCells(s, host, server.flavor) !== null,
  );
}

/** Filters of the operator's choice: AggregateInstanceExtraSpecsFilter and NUMATopologyFilter. */
const filtersAllow = (s: CloudState, flavor: Flavor, host: Host): boolean =>
  aggregatesAllow(s, flavor, host) && (!s.scenario.numaFilter || placeCells(s, host, flavor) !== null);

/**
 * AggregateInstanceExtraSpecsFilter: a flavor with extra specs of the scope `aggregate_instance_extra_specs` goes only to hosts whose aggregates
 * have these values in their metadata. No API shows that this filter is on.
 */
function aggregatesAllow(s: CloudState, { extraSpecs }: Flavor, host: Host): boolean {
  const scope = 'aggregate_instance_extra_specs:';
  const held = [...s.aggregates.values()].filter(({ hosts }) => hosts.includes(host.name));
  return Object.entries(extraSpecs).every(([key, value]) => {
    if (!key.startsWith(scope)) return true;
    return held.some(({ metadata }) => metadata[key.slice(scope.length)] === value);
  });
}

/**
 * The scheduler's group filters. `arrivals`: it also knows of the moves under way, because it chose them itself; of
 * several schedulers none knows the choices of the others.
 */
function groupAllows(s: CloudState, server: Server, dest: Host, known: 'present' | 'arrivals'): boolean {
  const group = s.groupOf.get(server.uuid);
  if (group === undefined) return true;
  const others = group.members.filter((member) => member !== server.uuid);
  if (group.policy === 'affinity') return others.some((member) => s.servers.get(member)?.host === dest.name);
  if (group.policy !== 'anti-affinity') return true;
  const there = others.filter((member) => {
    if (s.servers.get(member)?.host === dest.name) return true;
    return known === 'arrivals' && currentMove(s, member)?.chosen === dest.name;
  });
  return there.length < (group.maxServerPerHost ?? 1);
}

/** The compute's own check of the group, which counts every move to or from it (nova/compute/manager.py). */
export function groupViolated(s: CloudState, server: Server, dest: Host): string | null {
  const group = s.groupOf.get(server.uuid);
  const others = group?.members.filter((member) => member !== server.uuid) ?? [];
  if (group?.policy === 'affinity') {
    const hosts = others.flatMap((member) => s.servers.get(member)?.host ?? []);
    return hosts.length > 0 && !hosts.includes(dest.name) ? 'Affinity' : null;
  }
  if (group?.policy !== 'anti-affinity') return null;
  const there = others.filter((member) => {
    const move = currentMove(s, member);
    return (
      s.servers.get(member)?.host === dest.name ||
      (move !== undefined && (move.dest === dest.name || move.source === dest.name))
    );
  });
  return there.length < (group.maxServerPerHost ?? 1) ? null : 'Anti-affinity';
}

/** Whether the destination's hypervisor refuses, so that the conductor looks for another host. */
export function refuses(s: CloudState, server: Server, dest: Host): boolean {
  return (
    serverFault(s, server.uuid, 'pre-check') !== undefined ||
    hostFault(s, dest.name, 'refuse') !== undefined ||
    // The compute compares the guest's CPU with those of its host.
    server.cpuTraits.some((trait) => !dest.traits.includes(trait)) ||
    !s.isUp(dest)
  );
}
