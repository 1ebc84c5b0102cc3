/**
 * Plans for a real cluster that others published: ByteDance's data of "Towards VM Rescheduling Optimization Through Deep Reinforcement
 * Learning" (EuroSys 2025), `data/*.json` of github.com/bytedance/DRL-based-VM-Rescheduling. The file is read where it is. Prints JSON.
 *
 *   npm run bench:public -- FILE.json [MOVES, default 30,60,120]
 *
 * Each cluster of the file is planned by itself, as in the paper: no VM leaves its cluster. Kronos balances the share of CPUs and memory
 * that is allocated; the authors minimise the CPUs that are left over in pieces smaller than 16 on a NUMA node. Racks and NUMA nodes are
 * not part of the plan here, so `fragments` of a host counts its free CPUs modulo 16 over both nodes.
 */
import { readFileSync } from 'node:fs';
import { type ClusterFile, planCluster } from '@kronos/placement';

type Published = {
  readonly cluster_list: readonly {
    readonly cluster_name: string;
    readonly host_info: readonly {
      readonly node_id: string;
      readonly node_cpu: number;
      readonly node_mem_mb: number;
    }[];
    readonly vm_instance: readonly {
      readonly instance_id: string;
      readonly host_id: string;
      readonly numa: readonly { readonly cpu: number; readonly mem_mb: number }[];
    }[];
  }[];
};

const file = process.argv[2];
if (file === undefined) throw new Error('give the path of a file: npm run bench:public -- FILE.json');
const budgets = (process.argv[3] ?? '30,60,120').split(',').map(Number);
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

/** Share of the free CPUs that is left over in pieces smaller than 16. */
function fragments({ host_info: hosts, vm_instance: vms }: Cluster, placed: ReadonlyMap<string, string>): number {
  const used = new Map<string, number>();
  for (const vm of vms) {
    const host = placed.get(vm.instance_id) ?? vm.host_id;
    used.set(host, (used.get(host) ?? 0) + cpusOf(vm));
  }
  const free = hosts.map(({ node_id: id, node_cpu: cpu }) => cpu - (used.get(id) ?? 0));
  return sum(free.map((cpus) => cpus % PIECE)) / sum(free);
}

const { cluster_list: clusters } = JSON.parse(readFileSync(file, 'utf8')) as Published;
const figures = clusters.flatMap((cluster) =>
  budgets.map((maxMigrations) => {
    const startedMs = performance.now();
    const plan = planCluster(clusterFile(cluster), { maxMigrations });
    const placed = new Map(plan.moves.map(({ vm, to }) => [vm, to]));
    return {
      cluster: cluster.cluster_name,
      hosts: cluster.host_info.length,
      vms: cluster.vm_instance.length,
      budget: maxMigrations,
      moves: plan.moves.length,
      seconds: Math.round(performance.now() - startedMs) / 1000,
      combinedBefore: plan.before.combined,
      combinedAfter: plan.after.combined,
      fragmentsBefore: fragments(cluster, new Map()),
      fragmentsAfter: fragments(cluster, placed),
    };
  }),
);
process.stdout.write(`${JSON.stringify({ file, figures }, null, 2)}\n`);
