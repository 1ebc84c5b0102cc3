import {
  type Decision,
  type EngineOptions,
  type HostLoad,
  hostQueryOf,
  hostReadingOf,
  type Snapshot,
  timeMs,
  vmQueryOf,
  vmReadingOf,
} from '@kronos/contracts';
import { type AggregateState, hostsToMeasure } from '@kronos/projections';
import { releaseOf } from './events.ts';

/** The values of hosts that a policy balances; null where the answer is not whole. */
export function hostValuesOf(
  snapshot: Pick<Snapshot, 'hostReadings'>,
  policy: Snapshot['policies'][number],
): Readonly<Record<string, number>> | null {
  const reading = hostReadingOf(snapshot.hostReadings, hostQueryOf(policy, 'imbalance'));
  return reading === undefined || reading.health !== 'HEALTHY' ? null : reading.values;
}

/** The event's field about loads: of the hosts whose predictions are to be compared. Undefined: there is none. */
export function measuredLoads(
  state: AggregateState,
  snapshot: Snapshot,
  decision: Decision,
  options: Pick<EngineOptions, 'dryRun' | 'approval'>,
): HostLoad[] | undefined {
  const hosts = hostsToMeasure(state, {
    plan: decision.plan,
    release: releaseOf(decision, options, timeMs(snapshot.time)),
  });
  if (hosts.length === 0) return undefined;
  const policies = snapshot.policies
    .filter(({ enabled }) => enabled)
    .map((policy) => ({ name: policy.name, hosts: hostValuesOf(snapshot, policy), vms: vmValues(snapshot, policy) }));
  const wanted = new Set(hosts);
  const servers = Map.groupBy(
    snapshot.servers.filter(({ host }) => wanted.has(host)),
    ({ host }) => host,
  );
  const loads = hosts.flatMap((host): HostLoad[] => {
    const arrived = new Set(state.watched.get(host)?.arrived);
    const load = {
      host,
      values: new Map<string, number>(),
      vms: new Map<string, number>(),
      arrived: new Map<string, number>(),
    };
    for (const { name, hosts: of, vms } of policies) {
      const value = of?.[host];
      if (value === undefined || vms === null) continue;
      const sum = (only: (id: string) => boolean): number =>
        (servers.get(host) ?? []).reduce((all, { id }) => (only(id) ? all + (vms[id] ?? 0) : all), 0);
      load.values.set(name, value);
      load.vms.set(
        name,
        sum(() => true),
      );
      if (arrived.size > 0)
        load.arrived.set(
          name,
          sum((id) => arrived.has(id)),
        );
    }
    const { values, vms } = load;
    return values.size === 0
      ? []
      : [
          {
            host,
            values: Object.fromEntries(values),
            vms: Object.fromEntries(vms),
            arrived: Object.fromEntries(load.arrived),
          },
        ];
  });
  return loads.length === 0 ? undefined : loads;
}

/** The values of VMs by which a policy plans; null where the answer is not whole. */
function vmValues(
  snapshot: Pick<Snapshot, 'vmReadings'>,
  policy: Snapshot['policies'][number],
): Readonly<Record<string, number>> | null {
  const reading = vmReadingOf(snapshot.vmReadings, vmQueryOf(policy, 'vm_profile'));
  return reading === undefined || reading.health !== 'HEALTHY' ? null : reading.values;
}
