/**
 * The exporters that `kronos init` recognises, and the queries that their metrics allow. Names and units of metrics are those of
 * each exporter's source. Pure.
 */

/** Metrics of hosts. */
export type HostExporter = {
  readonly id: string;
  readonly title: string;
  /** It is there when all of these metrics are. */
  readonly metrics: readonly string[];
  /** A plain selector with one series per host, or a few: its labels show how the exporter names a host. */
  readonly sample: string;
  /** Utilisation from 0 to 1, one value per value of `label`. */
  readonly cpu: (label: string) => string;
  readonly memory: (label: string) => string;
  /** Logical CPUs, and bytes of memory; the host label is kept. */
  readonly cores: string;
  readonly memoryBytes: string;
};

/** Metrics of VMs. */
export type VmExporter = {
  readonly id: string;
  readonly title: string;
  readonly metrics: readonly string[];
  /** A plain selector with one series per VM. */
  readonly sample: string;
  /** Cores that a VM uses, one series per VM and host. */
  readonly cores: string;
  /** Bytes of host memory that a VM uses, with the metric that must be there for it; the first that is there counts. */
  readonly memory: readonly { readonly metric: string; readonly query: string }[];
};

const RANGE = '5m';

/** https://github.com/prometheus/node_exporter; Debian: prometheus-node-exporter. */
const nodeExporter: HostExporter = {
  id: 'node-exporter',
  title: 'node_exporter',
  metrics: ['node_cpu_seconds_total', 'node_memory_MemTotal_bytes', 'node_memory_MemAvailable_bytes'],
  sample: 'node_memory_MemTotal_bytes',
  cpu: (label) => `1 - avg by (${label}) (rate(node_cpu_seconds_total{mode="idle"}[${RANGE}]))`,
  memory: (label) =>
    `1 - sum by (${label}) (node_memory_MemAvailable_bytes) / sum by (${label}) (node_memory_MemTotal_bytes)`,
  cores: 'node_cpu_seconds_total{mode="idle"}',
  memoryBytes: 'node_memory_MemTotal_bytes',
};

/**
 * The exporters whose metrics begin with libvirt_domain_info: kumina/libvirt_exporter (Debian:
 * prometheus-libvirt-exporter), Tinkoff/libvirt-exporter, inovex/prometheus-libvirt-exporter and
 * zhangjianweibj/prometheus-libvirt-exporter. They agree on these names; resident memory is exported by some only.
 */
const libvirtDomainInfo: VmExporter = {
  id: 'libvirt-exporter',
  title: 'a libvirt exporter (libvirt_domain_info_*)',
  metrics: ['libvirt_domain_info_cpu_time_seconds_total'],
  sample: 'libvirt_domain_info_cpu_time_seconds_total',
  cores: `rate(libvirt_domain_info_cpu_time_seconds_total[${RANGE}])`,
  memory: [
    { metric: 'libvirt_domain_memory_stats_rss_bytes', query: 'libvirt_domain_memory_stats_rss_bytes' },
    { metric: 'libvirt_domain_info_memory_usage_bytes', query: 'libvirt_domain_info_memory_usage_bytes' },
  ],
};

/** vexxhost/libvirtd_exporter: CPU time in nanoseconds, memory in KiB, the label `uuid`. */
const libvirtd: VmExporter = {
  id: 'libvirtd-exporter',
  title: 'libvirtd_exporter (libvirtd_domain_*)',
  metrics: ['libvirtd_domain_cpu_time'],
  sample: 'libvirtd_domain_cpu_time',
  cores: `rate(libvirtd_domain_cpu_time[${RANGE}]) / 1e9`,
  memory: [
    { metric: 'libvirtd_domain_balloon_rss', query: 'libvirtd_domain_balloon_rss * 1024' },
    { metric: 'libvirtd_domain_balloon_current', query: 'libvirtd_domain_balloon_current * 1024' },
  ],
};

/** Ceilometer's samples through sg-core or a Pushgateway: CPU time in nanoseconds, memory in MiB; sampled every few minutes. */
const ceilometer: VmExporter = {
  id: 'ceilometer',
  title: 'ceilometer through a gateway (ceilometer_*)',
  metrics: ['ceilometer_cpu'],
  sample: 'ceilometer_cpu',
  cores: 'rate(ceilometer_cpu[15m]) / 1e9',
  memory: [{ metric: 'ceilometer_memory_usage', query: 'ceilometer_memory_usage * 1048576' }],
};

export const hostExporters: readonly HostExporter[] = [nodeExporter];
/** The most exact first. */
export const vmExporters: readonly VmExporter[] = [libvirtDomainInfo, libvirtd, ceilometer];

/** The exporters whose metrics are all there. */
export const recognise = <T extends { readonly metrics: readonly string[] }>(
  exporters: readonly T[],
  names: ReadonlySet<string>,
): T[] => exporters.filter((exporter) => exporter.metrics.every((metric) => names.has(metric)));
