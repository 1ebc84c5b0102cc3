import type { ProposedScope } from './scope.ts';

/** The input of `kronos init`, given or found. */
export type FoundCloud = {
  readonly scope: ProposedScope;
  /** Name of the cloud in clouds.yaml. */
  readonly cloud: string;
  readonly cloudsFile: string | null;
  /** The region to use; null: the one that clouds.yaml names. */
  readonly region: string | null;
  readonly prometheusUrl: string | null;
  /** Further lines of `[prometheus]`: how to authenticate. */
  readonly prometheusAccess: readonly string[];
  readonly natsUrl: string;
  /** Path of policies.yaml; null in the rules-only mode. */
  readonly policiesFile: string | null;
};

/** kronos.conf: only the options that differ from their defaults. */
export function configText(found: FoundCloud): string {
  const { scope } = found;
  const lines = [
    '# Written by kronos init. Every option with its default: kronos config sample.',
    '[engine]',
    `aggregates = ${scope.aggregates.join(', ')}`,
    ...scope.left.map(({ name, why }) => `# Left out: ${name} (${why})`),
    ...(scope.includeUnassigned ? ['include_unassigned_hosts = true'] : []),
    '# Nothing moves until you set this to false.',
    'dry_run = true',
    ...(found.policiesFile === null
      ? ['# Evacuation and affinity repair only.', 'balance = false']
      : [`policies_file = ${found.policiesFile}`]),
    '# Keep room for the VMs of one host that fails; `kronos headroom --proof` shows where they would go.',
    '# failover_hosts = 1',
    '# A VM that others move after Kronos stays there for foreign_wait (an hour); `ignore`: Kronos goes on.',
    '# foreign_moves = ignore',
    '# VMs that Kronos never moves: by project, flavor, name or image; and metadata keys or tags that tenants may set.',
    '# opt_out = kronos:exclude, flavor:database',
    '# VMs with pinned CPUs or huge pages go where Nova lets them, also where the NUMA cells of the hosts are unknown.',
    '# move_unknown_topology = true',
    '',
    '[nova]',
    `cloud = ${found.cloud}`,
    ...(found.cloudsFile === null ? [] : [`clouds_file = ${found.cloudsFile}`]),
    ...(found.region === null ? [] : [`region_name = ${found.region}`]),
    '# Cells of Nova, which its API does not show: if `nova-manage cell_v2 list_hosts` has several, name the hosts of each.',
    '# No live migration leaves a cell; other moves do (docs/cells.md).',
    '# cells = cell1:cmp1*, cell2:cmp2*',
    '# NUMA cells of the hosts, for VMs with pinned CPUs or huge pages, where node_exporter does not show them.',
    '# host_topology = /etc/kronos/host-topology.yaml',
    '# Where all guests see one common CPU model: do not compare the CPUs of hosts.',
    '# cpu_compatibility = ignore',
    '# Devices with which your hosts can live-migrate VMs: pci-device, vgpu, sriov-port (docs/real-clouds.md).',
    '# movable_devices = pci-device',
    '# VMs with SR-IOV ports stay where they are. read: a VM whose ports cannot be read stays, too.',
    '# sriov_ports = read',
    '',
    ...(found.prometheusUrl === null && found.prometheusAccess.length === 0
      ? []
      : [
          '[prometheus]',
          ...(found.prometheusUrl === null ? [] : [`url = ${found.prometheusUrl}`]),
          ...found.prometheusAccess,
          '# Headers of each request, such as the tenant of a Mimir. auth = keystone: the token of [nova].',
          '# headers = X-Scope-OrgID: TENANT',
          '',
        ]),
    '[nats]',
    `servers = ${found.natsUrl}`,
    '# Monitoring addresses of the servers: config check asks them whether acknowledged events are on disk.',
    '# monitoring = http://nats-1:8222',
  ];
  return `${lines.join('\n')}\n`;
}
