import type { Cloud } from './cloud.ts';
import type { ActiveSeriesFault } from './faults.ts';
import type { Host, Server } from './model.ts';
import { isRunning } from './servers.ts';

/** One sample of one series. `atMs`: when it was scraped. */
export interface SimSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly atMs: number;
}

/** Prometheus keeps a series alive this long after its last sample. */
const LOOKBACK_MS = 300_000;

/** The metrics the cloud exports, with the meaning of their values. */
export const METRICS: Readonly<Record<string, string>> = {
  host_cpu_utilisation: 'share of the host CPUs in use, 0..1',
  host_mem_utilisation: 'share of the host memory in use, 0..1',
  host_cpu_cores: 'CPUs of the host',
  host_mem_mb: 'memory of the host, MB',
  vm_cpu_cores: 'cores the VM uses',
  vm_mem_mb: 'memory the VM uses, MB',
  up: '1 while the target answers',
};

const TARGET = { instance: '127.0.0.1:19180', job: 'bed' };

/** The cores that a server uses at `atMs`. */
function coresAt(cloud: Cloud, server: Server, atMs: number): number {
  const { demand, running } = loadAt(server, atMs);
  if (!running) return 0;
  const { cpuCores, curve } = demand;
  if (curve === undefined) return cpuCores;
  const turns = cloud.cloudSeconds(atMs) / curve.periodSeconds + curve.phase;
  return Math.max(0, cpuCores * (1 + curve.amplitude * Math.sin(2 * Math.PI * turns)));
}

/** The guest's host at `atMs`; null before it was created and after it was deleted. */
function hostAt(server: Server, atMs: number): string | null {
  let host: string | null = null;
  for (const placement of server.placements) {
    if (placement.fromMs > atMs) break;
    host = placement.host;
  }
  return host;
}

/** The load of the guest at `atMs`. */
function loadAt(server: Server, atMs: number): { readonly demand: Server['demand']; readonly running: boolean } {
  const former = server.formerLoads.find(({ untilMs }) => atMs < untilMs);
  return former ?? { demand: server.demand, running: isRunning(server) };
}

const upAt = (host: Host | undefined, atMs: number): boolean =>
  host?.outages.every(({ fromMs, untilMs }) => atMs < fromMs || (untilMs !== null && atMs >= untilMs)) ?? false;

type Labels = Readonly<Record<string, string>>;
/** Labels are made once for each series: most of a query's cost would be making them. What has read them may keep them. */
const made = new Map<string, WeakMap<object, Labels[]>>();

/** Gives the labels of the series of a metric. Its arguments: what the series is about; where it is, part of a server's labels. */
function labelsOf(metric: string): (of: Server | Host, host: string) => Labels {
  let known = made.get(metric);
  if (known === undefined) {
    known = new WeakMap();
    made.set(metric, known);
  }
  const ofMetric = known;
  return (of, host) => {
    let places = ofMetric.get(of);
    if (places === undefined) {
      places = [];
      ofMetric.set(of, places);
    }
    for (const labels of places) if (labels.host === host) return labels;
    const labels = Object.freeze({
      __name__: metric,
      ...('uuid' in of ? { instance_uuid: of.uuid } : {}),
      host,
      ...TARGET,
    });
    places.push(labels);
    return labels;
  };
}

/** Every exported sample of `metric` as scraped at exactly `atMs`, before faults. */
function scrape(cloud: Cloud, metric: string, atMs: number): SimSample[] {
  const labels = labelsOf(metric);
  const sized = (size: 'vcpus' | 'memoryMb'): SimSample[] =>
    [...cloud.hosts.values()].map((host) => ({ labels: labels(host, host.name), value: host.total[size], atMs }));
  switch (metric) {
    case 'up':
      return [{ labels: { __name__: metric, ...TARGET }, value: 1, atMs }];
    case 'host_cpu_cores':
      return sized('vcpus');
    case 'host_mem_mb':
      return sized('memoryMb');
    case 'host_cpu_utilisation':
    case 'host_mem_utilisation':
      return utilisation(cloud, metric, atMs);
    case 'vm_cpu_cores':
    case 'vm_mem_mb':
      return usedByServers(cloud, metric, atMs);
    default:
      return ofCells(cloud, metric, atMs);
  }
}

/** Servers that were there at `atMs`. */
function serversAt(cloud: Cloud, atMs: number): Iterable<Server> {
  const gone = [...cloud.deleted.values()].filter((server) => (server.deletedMs ?? 0) > atMs);
  return gone.length === 0 ? cloud.servers.values() : [...cloud.servers.values(), ...gone];
}

/** The use of a server at `atMs`: cores, or MB of memory. */
const useAt = (cloud: Cloud, server: Server, size: 'vcpus' | 'memoryMb', atMs: number): number =>
  size === 'vcpus' ? coresAt(cloud, server, atMs) : loadAt(server, atMs).demand.memoryMb;

function utilisation(cloud: Cloud, metric: 'host_cpu_utilisation' | 'host_mem_utilisation', atMs: number): SimSample[] {
  const labels = labelsOf(metric);
  const size = metric === 'host_cpu_utilisation' ? 'vcpus' : 'memoryMb';
  const sums = new Map<string, number>();
  for (const host of cloud.hosts.values()) if (upAt(host, atMs)) sums.set(host.name, 0);
  for (const server of serversAt(cloud, atMs)) {
    const host = hostAt(server, atMs);
    const sum = host === null ? undefined : sums.get(host);
    if (host === null || sum === undefined) continue;
    sums.set(host, sum + useAt(cloud, server, size, atMs));
  }
  return [...cloud.hosts.values()].flatMap((host) => {
    const sum = sums.get(host.name);
    if (sum === undefined) return [];
    return [{ labels: labels(host, host.name), value: Math.min(1, sum / host.total[size]), atMs }];
  });
}

function usedByServers(cloud: Cloud, metric: 'vm_cpu_cores' | 'vm_mem_mb', atMs: number): SimSample[] {
  const labels = labelsOf(metric);
  const size = metric === 'vm_cpu_cores' ? 'vcpus' : 'memoryMb';
  const out: SimSample[] = [];
  for (const server of serversAt(cloud, atMs)) {
    const host = hostAt(server, atMs);
    if (host === null || !upAt(cloud.hosts.get(host), atMs)) continue;
    out.push({ labels: labels(server, host), value: useAt(cloud, server, size, atMs), atMs });
  }
  return out;
}

/** node_exporter's metrics of NUMA cells (--collector.meminfo_numa). */
function ofCells(cloud: Cloud, metric: string, atMs: number): SimSample[] {
  return [...cloud.hosts.values()].flatMap(({ name, cells }) => {
    const sample = (value: number, node?: number): SimSample => ({
      labels: { __name__: metric, host: name, ...(node === undefined ? {} : { node: String(node) }), ...TARGET },
      value,
      atMs,
    });
    if (metric === 'node_memory_numa_MemTotal')
      return cells.map(({ id, memoryMb }) => sample(memoryMb * 1024 ** 2, id));
    if (metric === 'node_memory_numa_HugePages_Total')
      return cells.map(({ id, pages }) => sample(Object.values(pages)[0] ?? 0, id));
    const [kb] = cells.flatMap(({ pages }) => Object.keys(pages));
    return metric === 'node_memory_Hugepagesize_bytes' && kb !== undefined ? [sample(Number(kb) * 1024)] : [];
  });
}

/** The newest sample of every series of `metric` at `atMs`, faults included: an instant selector's answer. */
export function instant(cloud: Cloud, metric: string, atMs: number): SimSample[] {
  const stepMs = cloud.scenario.scrapeSeconds * 1000;
  const scraped = Math.floor(atMs / stepMs) * stepMs;
  if (scraped < cloud.startMs - LOOKBACK_MS * 12) return [];
  const faults = cloud.seriesFaults.filter(
    (fault) =>
      fault.fromMs <= scraped &&
      (fault.untilMs === null || fault.untilMs > scraped) &&
      (fault.metric === undefined || fault.metric === metric),
  );
  const fresh = scrape(cloud, metric, scraped);
  if (faults.length === 0) return fresh;
  const before = new Map<number, Map<string, SimSample>>();
  const former: Former = ({ labels }, fromMs) => {
    let then = before.get(fromMs);
    if (then === undefined) {
      const at = Math.floor(fromMs / stepMs) * stepMs;
      then = new Map(scrape(cloud, metric, at).map((sample) => [JSON.stringify(sample.labels), sample]));
      before.set(fromMs, then);
    }
    return then.get(JSON.stringify(labels));
  };
  return fresh.flatMap((sample) => {
    const fault = faults.findLast((each) =>
      Object.entries(each.labels).every(([name, value]) => sample.labels[name] === value),
    );
    return fault === undefined ? [sample] : underFault(sample, fault, former, atMs);
  });
}

/** The sample of the same series at an earlier time. */
type Former = (sample: SimSample, atMs: number) => SimSample | undefined;

/** The samples that Prometheus has in place of one whose series has a fault. */
function underFault(sample: SimSample, fault: ActiveSeriesFault, former: Former, atMs: number): SimSample[] {
  switch (fault.kind) {
    case 'missing':
      return [];
    case 'stale': {
      const last = former(sample, fault.fromMs);
      return last !== undefined && atMs - last.atMs < LOOKBACK_MS ? [last] : [];
    }
    case 'frozen': {
      const last = former(sample, fault.fromMs);
      return [last === undefined ? sample : { ...last, atMs: sample.atMs }];
    }
    case 'duplicate':
      return [sample, { ...sample, labels: { ...sample.labels, instance: '127.0.0.2:19180' } }];
    case 'nan':
      return [{ ...sample, value: Number.NaN }];
    case 'inf':
      return [{ ...sample, value: Number.POSITIVE_INFINITY }];
    case 'value':
      return [{ ...sample, value: fault.value ?? 0 }];
  }
}
