/**
 * Plans for a real cluster that others published: ByteDance's data of "Towards VM Rescheduling Optimization Through Deep Reinforcement
 * Learning" (EuroSys 2025), `data/*.json` of github.com/bytedance/DRL-based-VM-Rescheduling. The file is read where it is. Prints JSON.
 *
 *   git clone https://github.com/bytedance/DRL-based-VM-Rescheduling DIR
 *   npm run bench:public -- DIR/data/reset_vm_pm_id_clear2.json [MOVES, default 25,50,100]
 *
 * Each cluster of the file is planned by itself, as in the paper: no VM leaves its cluster. Two answers for each number of moves:
 *
 * - `room`, the aim of the authors: the fewest free CPUs in pieces smaller than 16 on a NUMA node (their fragment rate). That is the most
 *   new VMs of 16 CPUs, so it is `kronos fit`. Each NUMA node counts as a host; VMs on two nodes stay.
 * - `balance`: Kronos' own aim, the allocated shares of CPUs and memory of whole hosts.
 *
 * A cluster file (docs/cli.md) is planned too, for balance alone: it has no NUMA nodes.
 */

import { readFileSync } from 'node:fs';
import { errorText } from '@kronos/contracts';
import { type ClusterFile, fit as makeRoom, planCluster } from '@kronos/placement';
import { decideInput } from '@kronos/placement/testing';

type Published = {
  readonly cluster_list: readonly {
    readonly cluster_name: string;
    readonly host_info: readonly {
      readonly node_id: string;
      readonly node_cpu: number;
      readonly node_mem_mb: number;
      readonly numa: readonly {
        readonly node: number;
        readonly total_cpu: number;
        readonly memory_huge_total_mb: number;
      }[];
    }[];
    readonly vm_instance: readonly {
      readonly instance_id: string;
      readonly host_id: string;
      readonly numa: readonly { readonly node: number; readonly cpu: number; readonly mem_mb: number }[];
    }[];
  }[];
};

const WHERE =
  'git clone https://github.com/bytedance/DRL-based-VM-Rescheduling; npm run bench:public -- DIR/data/reset_vm_pm_id_clear2.json';
const file = process.argv[2] ?? fail('no file was given', WHERE);
const budgets = (process.argv[3] ?? '25,50,100').split(',').map(Number);
/** The piece of CPUs that the authors count. */
const PIECE = 16;

type Cluster = Published['cluster_list'][number];
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const cpusOf = ({ numa }: Cluster['vm_instance'][number]): number => sum(numa.map(({ cpu }) => cpu));
const memOf = ({ numa }: Cluster['vm_instance'][number]): number => sum(numa.map(({ mem_mb: mb }) => mb));

function clusterFile({ host_info: hosts, vm_instance: vms }: Cluster): ClusterFile {
  const sizes = new Map(hosts.map((host) => [host.node_id, host]));
  const on = Map.groupBy(vms, ({ host_id: host }) => host);
  return {
    policies: ['cpu', 'memory'],
    weights: [0.5, 0.5],
    hosts: hosts.map(({ node_id: id, node_cpu: cpu, node_mem_mb: mem }) => {
      const own = on.get(id) ?? [];
      const size = [cpu, mem];
      return { id, size, vcpusFree: cpu - sum(own.map(cpusOf)), memFreeMb: mem - sum(own.map(memOf)) };
    }),
    vms: vms.map((vm) => {
      const host = sizes.get(vm.host_id);
      const [vcpus, memMb] = [cpusOf(vm), memOf(vm)];
      return {
        id: vm.instance_id,
        host: vm.host_id,
        w: [vcpus / (host?.node_cpu ?? 1), memMb / (host?.node_mem_mb ?? 1)],
        vcpus,
        memMb,
      };
    }),
  };
}

const NONE = { minUnit: null, maxUnit: null, stepSize: null };
const SHAPE = { name: 'cpus-16', resources: { VCPU: PIECE }, requiredTraits: [], forbiddenTraits: [] };

/** The NUMA nodes as hosts. A VM on two nodes is a part on each, and neither moves. */
function nodesOf({ host_info: hosts, vm_instance: vms }: Cluster) {
  const parts = vms.flatMap(({ instance_id: id, host_id: host, numa }) =>
    numa.map(({ node, cpu, mem_mb: mb }) => ({
      id: `${id}/${node}`,
      on: `${host}/${node}`,
      cpu,
      mb,
      stays: numa.length > 1,
    })),
  );
  const on = Map.groupBy(parts, (part) => part.on);
  const nodes = hosts.flatMap(({ node_id: host, numa }) =>
    numa.map(({ node, total_cpu: cpu, memory_huge_total_mb: mb }) => {
      const own = on.get(`${host}/${node}`) ?? [];
      return {
        id: `${host}/${node}`,
        cpu,
        mb,
        usedCpu: sum(own.map((one) => one.cpu)),
        usedMb: sum(own.map((one) => one.mb)),
      };
    }),
  );
  return { nodes, parts };
}

/** The number of VMs of 16 CPUs that `moves` moves make room for. */
function room(cluster: Cluster, moves: number) {
  const { nodes, parts } = nodesOf(cluster);
  const input = decideInput({
    policies: { cpu: { threshold: 1 } },
    hosts: Object.fromEntries(
      nodes.map(({ id, cpu, mb, usedCpu, usedMb }) => [
        id,
        {
          set: {
            inventory: {
              VCPU: { ...NONE, capacity: cpu, used: usedCpu },
              MEMORY_MB: { ...NONE, capacity: mb, used: usedMb },
            },
          },
        },
      ]),
    ),
    vms: Object.fromEntries(
      parts.map(({ id, on, cpu, mb, stays }) => {
        const set = { flavor: `f${cpu}`, resources: { VCPU: cpu, MEMORY_MB: mb }, optedOutBy: stays ? 'numa' : null };
        return [id, { host: on, w: { cpu: 0.001 }, ramMb: mb, vcpus: cpu, set }];
      }),
    ),
  });
  const free = sum(nodes.map(({ cpu, usedCpu }) => cpu - usedCpu));
  const startedMs = performance.now();
  const ask = (wanted: number) => makeRoom(input, SHAPE, wanted, moves);
  let found = ask(0);
  // A search that aims at all of them at once may end before it reaches one.
  for (let more = 1; found.now + more <= free / PIECE; more *= 2) {
    const next = ask(found.now + more);
    if (next.after <= found.after) break;
    found = next;
  }
  const rate = (slots: number): number => (free - PIECE * slots) / free;
  return {
    moves: found.moves.length,
    seconds: Math.round(performance.now() - startedMs) / 1000,
    freeCpus: free,
    fits: { before: found.now, after: found.after },
    fragmentRate: { before: rate(found.now), after: rate(found.after) },
  };
}

function balance(cluster: ClusterFile, maxMigrations: number) {
  const startedMs = performance.now();
  const { moves, before, after } = planCluster(cluster, { maxMigrations });
  return {
    moves: moves.length,
    seconds: Math.round(performance.now() - startedMs) / 1000,
    combined: { before: before.combined, after: after.combined },
  };
}

function fail(problem: string, remedy: string): never {
  console.error(`bench:public: ${problem}\n${remedy}`);
  process.exit(1);
}

function read(path: string): Published | ClusterFile {
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    fail(`${path} cannot be read: ${errorText(error)}`, WHERE);
  }
  const has = (...keys: string[]): boolean =>
    typeof found === 'object' && found !== null && keys.every((key) => key in found);
  if (has('cluster_list') || has('policies', 'hosts', 'vms')) return found as Published | ClusterFile;
  fail(`${path} has neither cluster_list (ByteDance's data) nor policies, hosts and vms (a cluster file)`, WHERE);
}

const found = read(file);
const figures =
  'cluster_list' in found
    ? found.cluster_list.flatMap((cluster) =>
        budgets.map((budget) => ({
          cluster: cluster.cluster_name,
          hosts: cluster.host_info.length,
          vms: cluster.vm_instance.length,
          budget,
          room: room(cluster, budget),
          balance: balance(clusterFile(cluster), budget),
        })),
      )
    : budgets.map((budget) => ({
        hosts: found.hosts.length,
        vms: found.vms.length,
        budget,
        balance: balance(found, budget),
      }));
process.stdout.write(`${JSON.stringify({ file, figures }, null, 2)}\n`);
