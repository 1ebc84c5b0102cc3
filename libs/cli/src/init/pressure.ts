/**
 * Triggers of policies that act under contention alone, and policies of saturation: pressure stall information, ready time of vCPUs, swap of guests,
 * steal, balloons, disks and networks. Pure. Metrics: node_exporter (collectors pressure, diskstats, netclass); Tinkoff/libvirt-exporter and
 * inovex/prometheus-libvirt-exporter.
 */
import { bare, type ProposedPolicy, type Trigger } from './propose.ts';

const RANGE = '5m';
const HOST = 'instance';

/** The names of hosts without the port, so that the exporter of VMs and that of hosts name a host alike. */
const withoutPort = (query: string): string => `label_replace(${query}, "${HOST}", "$1", "${HOST}", "(.+?)(:[0-9]+)?")`;

/** 0 for hosts without VMs: their exporter answers and has no series of VMs. A host whose exporter does not answer has no value. */
const orNone = (query: string): string => `${query} or 0 * max by (${HOST}) (${withoutPort('libvirt_up == 1')})`;

/** By policy; one without a trigger acts by its threshold. */
export type Triggers = Readonly<Partial<Record<'cpu' | 'memory', Trigger>>>;

/** The share of time in which some task waited for the resource: Linux' pressure stall information. */
export const stalls: Triggers = {
  cpu: {
    query: `max by (${HOST}) (rate(node_pressure_cpu_waiting_seconds_total[${RANGE}]))`,
    actAbove: 0.1,
    comment: 'Acts only where tasks of a host wait for a CPU for more than 10 % of the time.',
  },
  memory: {
    query: `max by (${HOST}) (rate(node_pressure_memory_waiting_seconds_total[${RANGE}]))`,
    actAbove: 0.05,
    comment: 'Acts only where tasks of a host wait for memory for more than 5 % of the time.',
  },
};

/** Contention in guests: ready time, which they see as steal, and swap. */
export const guests: Triggers = {
  cpu: {
    query: orNone(
      `clamp_max(max by (${HOST}) (${withoutPort(`rate(libvirt_domain_vcpu_delay_seconds_total[${RANGE}])`)}), 1)`,
    ),
    actAbove: 0.1,
    comment: 'Acts only where a vCPU is ready but does not run for more than 10 % of the time: its guest sees steal.',
  },
  memory: {
    query: orNone(
      `avg by (${HOST}) (${withoutPort(`rate(libvirt_domain_memory_stats_swap_in_bytes[${RANGE}])`)} > bool 0)`,
    ),
    actAbove: 0.1,
    comment: 'Acts only where more than 10 % of the guests of a host read from their swap.',
  },
};

/** Hosts that are VMs themselves: the time for which their own host lets them wait. */
export const steal: Triggers = {
  cpu: {
    query: `avg by (${HOST}) (rate(node_cpu_seconds_total{mode="steal"}[${RANGE}]))`,
    actAbove: 0.1,
    comment: 'Acts only where more than 10 % of the CPU time of a host is stolen by the host below it.',
  },
};

const BALLOON = 'libvirt_domain_memory_stats_actual_balloon_bytes';
/** Of the guests that have a balloon. */
const BALLOON_MOST = `libvirt_domain_info_maximum_memory_bytes and on (domain, ${HOST}) ${BALLOON}`;

/** The share of the guests' memory that balloons took back. */
export const balloons: Triggers = {
  memory: {
    query: orNone(`1 - sum by (${HOST}) (${withoutPort(BALLOON)}) / sum by (${HOST}) (${withoutPort(BALLOON_MOST)})`),
    actAbove: 0.1,
    comment: 'Acts only where balloons took more than 10 % of the memory of the guests of a host.',
  },
};

const DISK = `rate(node_disk_io_time_seconds_total[${RANGE}])`;
const NETWORK = `rate(node_network_transmit_bytes_total[${RANGE}]) / on (${HOST}, device) (node_network_speed_bytes > 0)`;
const VM_DISK = `(rate(libvirt_domain_block_stats_read_bytes_total[${RANGE}]) + rate(libvirt_domain_block_stats_write_bytes_total[${RANGE}]))`;
const VM_NETWORK = `rate(libvirt_domain_interface_stats_transmit_bytes_total[${RANGE}])`;

/** Policies of the busiest disk and link of each host, which act once one is busy. */
export const saturation: readonly ProposedPolicy[] = [
  {
    ...policyOf('disk', `clamp_max(max by (${HOST}) (${DISK}), 1)`),
    vmProfileQuery: `sum by (domain, kronos_host) (${bare(VM_DISK, HOST)}) / on (kronos_host) group_left sum by (kronos_host) (${bare(VM_DISK, HOST)}) * on (kronos_host) group_left max by (kronos_host) (${bare(DISK, HOST)})`,
    comments: [
      'The share of time in which the busiest disk of a host works. A VM has its share by bytes.',
      'Acts only where a disk is busy for more than 60 % of the time.',
    ],
  },
  {
    ...policyOf('network', `clamp_max(max by (${HOST}) (${NETWORK}), 1)`),
    vmProfileQuery: `sum by (domain, kronos_host) (${bare(VM_NETWORK, HOST)}) / on (kronos_host) group_left max by (kronos_host) (${bare('node_network_speed_bytes > 0', HOST)})`,
    comments: [
      'What the busiest link of a host sends, as a share of its speed.',
      'Acts only where a link sends more than 60 % of its speed.',
    ],
  },
];

function policyOf(name: string, imbalanceQuery: string): Omit<ProposedPolicy, 'vmProfileQuery' | 'comments'> {
  return {
    name,
    weight: 0.5,
    imbalanceQuery,
    hostLabel: HOST,
    vmProfileLabel: 'domain',
    vmProfileLabelType: 'nova_internal_name',
    resourceClass: null,
    threshold: 0.2,
    actAbove: 0.6,
  };
}
