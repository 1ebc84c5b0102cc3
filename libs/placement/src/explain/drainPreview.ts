import type { Reason } from '@kronos/contracts';
import { isUp } from '@kronos/facts';
import { float, int, item } from '../base/array.ts';
import type { DecideInput } from '../decide.ts';
import { Draft } from '../draft/draft.ts';
import { evacuate, evacuationEnds } from '../passes/evacuate.ts';
import { codeOfNumber, reasonMeanings } from '../reasons.ts';
import { decisionMs } from '../snapshot/memory.ts';
import { observe } from '../snapshot/observe.ts';

type Server = { readonly serverId: string; readonly serverName: string };

/** The effect of a drain of one host, from the snapshot. */
export type HostPreview = {
  readonly host: string;
  /** Set when the host was disabled before the drain. Nova does not show who disabled it. Kronos will not enable it. */
  readonly disabled: { readonly reason: string | null } | null;
  /** The destination of each VM, in the order in which the planner would move them. */
  readonly moves: readonly (Server & { readonly to: string; readonly ramMb: number; readonly diskGb: number })[];
  /** VMs that leave later: they wait for something that ends by itself (a cooldown, a move in flight). */
  readonly waiting: readonly (Server & { readonly reason: Reason })[];
  /** VMs that cannot leave, each with a reason. */
  readonly stuck: readonly (Server & { readonly reason: Reason })[];
};

export type DrainPreview = {
  readonly hosts: readonly HostPreview[];
  /** Names that the snapshot does not have. */
  readonly unknown: readonly string[];
};

/**
 * Previews a drain of these hosts now. It runs the evacuator's own pass on the snapshot, with the hosts disabled and no limit to the
 * number of moves. It ignores the gates: they only delay the moves.
 */
export function previewDrain({ snapshot, memory, options }: DecideInput, names: readonly string[]): DrainPreview {
  const wanted = new Set(names);
  const seen = new Map(snapshot.hosts.map((host) => [host.name, host.service]));
  const hosts = snapshot.hosts.map((host) =>
    wanted.has(host.name) && host.service.status === 'enabled'
      ? { ...host, service: { ...host.service, status: 'disabled' as const } }
      : host,
  );
  const draining = [...new Set([...(memory.draining ?? []), ...names])];
  const observed = observe({ ...snapshot, hosts }, { ...memory, draining }, options, decisionMs(snapshot, memory));
  const { cluster } = observed;
  const draft = new Draft(cluster, cluster.V);
  evacuate(draft, options);
  evacuationEnds(draft);
  const stuck = new Map(draft.stuck.map((one) => [one.serverId, one]));
  return {
    hosts: [...wanted].flatMap((name) => {
      const service = seen.get(name);
      const host = cluster.hostIndex.get(name);
      if (service === undefined || host === undefined) return [];
      const moves = draft.moves.flatMap(({ vm, from, to }) =>
        from === host
          ? [
              {
                ...serverOf(vm),
                to: item(cluster.hostNames, to),
                ramMb: float(cluster.ramMb, vm),
                diskGb: float(cluster.diskGb, vm),
              },
            ]
          : [],
      );
      const waiting: (Server & { reason: Reason })[] = [];
      const blocked: (Server & { reason: Reason })[] = [];
      for (let vm = 0; vm < cluster.V; vm++) {
        if (int(cluster.vmHost, vm) !== host || draft.moved[vm] === 1) continue;
        const server = serverOf(vm);
        const one = stuck.get(server.serverId);
        if (one !== undefined) blocked.push({ ...server, reason: one.reason });
        else waiting.push({ ...server, reason: refusalOf(vm, isUp(service)) });
      }
      const disabled = service.status === 'enabled' ? null : { reason: service.disabledReason };
      return [{ host: name, disabled, moves, waiting, stuck: blocked }];
    }),
    unknown: [...wanted].filter((name) => !seen.has(name)),
  };

  function serverOf(vm: number): Server {
    return { serverId: item(cluster.vmIds, vm), serverName: item(cluster.vmNames, vm) };
  }

  /** The reason that a VM which is not stuck does not move at once. */
  function refusalOf(vm: number, up: boolean): Reason {
    const refusal = int(cluster.vmRefusal, vm);
    const code = refusal === 0 ? (up ? 'host-broken' : 'vm-source-down') : codeOfNumber(refusal);
    return { code, text: reasonMeanings[code] };
  }
}
