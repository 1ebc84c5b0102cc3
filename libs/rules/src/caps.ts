import { count } from '@kronos/contracts';
import type { ReasonOf, WaitReasonCode } from '@kronos/facts';

/** The concurrency limits: the number of moves of an aggregate that may run at once, over all replicas. */
export type Caps = {
  readonly maxConcurrentMigrations: number;
  readonly maxOutboundPerHost: number;
  readonly maxInboundPerHost: number;
  readonly maxConcurrentPerGroup: number;
};

/** A move that holds a slot, or would. */
export type SlotUse = {
  readonly serverId: string;
  readonly from: string;
  readonly destination: string;
  /** Ids of the server groups that the VM is in. */
  readonly groups: readonly string[];
};

/** The number of slots held: in total those of the aggregate; for each VM, host and group those of all aggregates. */
export type SlotCounts = {
  readonly total: number;
  readonly bySource: ReadonlyMap<string, number>;
  readonly byDestination: ReadonlyMap<string, number>;
  /** By server group id. */
  readonly byGroup: ReadonlyMap<string, number>;
  /** The VMs that move. */
  readonly servers: ReadonlySet<string>;
};

/** @param elsewhere slots of other aggregates: they count for their VM, hosts and groups */
export function countSlots(held: readonly SlotUse[], elsewhere: readonly SlotUse[] = []): SlotCounts {
  const bySource = new Map<string, number>();
  const byDestination = new Map<string, number>();
  const byGroup = new Map<string, number>();
  const servers = new Set<string>();
  const add = (counts: Map<string, number>, key: string): void => {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  };
  for (const { serverId, from, destination, groups } of [...held, ...elsewhere]) {
    servers.add(serverId);
    add(bySource, from);
    add(byDestination, destination);
    for (const group of groups) add(byGroup, group);
  }
  return { total: held.length, bySource, byDestination, byGroup, servers };
}

/** `1 move runs`, `2 moves run`. */
const busy = (n: number, verb: string, one = `${verb}s`): string => `${count(n, 'move')} ${n === 1 ? one : verb}`;

/**
 * Which limit keeps one more move from starting: one move for each VM, `max_concurrent_migrations` for the aggregate,
 * `max_outbound_per_host` for its source, `max_inbound_per_host` for its destination, `max_concurrent_per_group` for each
 * of its server groups.
 *
 * @returns null when a slot is free
 */
export function capReached(held: SlotCounts, move: SlotUse, caps: Caps): ReasonOf<WaitReasonCode> | null {
  const { serverId, from, destination, groups } = move;
  if (held.servers.has(serverId)) return { code: 'server-moving', text: 'another move of this VM runs' };
  if (held.total >= caps.maxConcurrentMigrations)
    return { code: 'max_concurrent_migrations', text: `${busy(held.total, 'run')} in this aggregate` };
  const out = held.bySource.get(from) ?? 0;
  if (out >= caps.maxOutboundPerHost) return { code: 'max_outbound_per_host', text: `${busy(out, 'leave')} ${from}` };
  const into = held.byDestination.get(destination) ?? 0;
  if (into >= caps.maxInboundPerHost)
    return { code: 'max_inbound_per_host', text: `${busy(into, 'reach', 'reaches')} ${destination}` };
  for (const group of groups) {
    const moving = held.byGroup.get(group) ?? 0;
    if (moving >= caps.maxConcurrentPerGroup)
      return {
        code: 'max_concurrent_per_group',
        text: `${count(moving, 'member')} of server group ${group} ${moving === 1 ? 'moves' : 'move'}`,
      };
  }
  return null;
}
