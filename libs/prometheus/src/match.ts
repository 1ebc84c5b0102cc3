/** Finds the host or VM that a label value of Prometheus names. Pure. */

/** A host under both of its names. */
export interface HostNames {
  /** Nova's service host: the identity of a host. */
  readonly serviceHost: string;
  readonly hypervisorHostname: string;
}

export interface HostMatches {
  /** Label value to service host. */
  readonly byLabel: ReadonlyMap<string, string>;
  /** Label values that fit no host. */
  readonly unknown: readonly string[];
  /** Label values that fit several hosts: no data for any of them. */
  readonly ambiguous: readonly string[];
}

/**
 * A label value is a service host exactly, else a hypervisor hostname exactly, else either after removing `:port`. The
 * first of these that fits any host decides; when it fits several, the label is ambiguous.
 */
export function matchHosts(labels: Iterable<string>, hosts: readonly HostNames[]): HostMatches {
  const byService = index(hosts, (host) => host.serviceHost);
  const byHypervisor = index(hosts, (host) => host.hypervisorHostname);
  const byLabel = new Map<string, string>();
  const unknown: string[] = [];
  const ambiguous: string[] = [];
  for (const label of new Set(labels)) {
    const bare = label.replace(/:\d+$/, '');
    const found =
      byService.get(label) ??
      byHypervisor.get(label) ??
      (bare === label ? undefined : union(byService.get(bare), byHypervisor.get(bare)));
    if (found === undefined) unknown.push(label);
    else if (found.size === 1) for (const host of found) byLabel.set(label, host);
    else ambiguous.push(label);
  }
  return { byLabel, unknown, ambiguous };
}

function index(hosts: readonly HostNames[], name: (host: HostNames) => string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const host of hosts) {
    const named = found.get(name(host)) ?? new Set();
    found.set(name(host), named.add(host.serviceHost));
  }
  return found;
}

function union(a: Set<string> | undefined, b: Set<string> | undefined): Set<string> | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return new Set([...a, ...b]);
}

export type VmLabelType = 'nova_instance_uuid' | 'nova_internal_name' | 'nova_display_name';

/** A VM under its three names. */
export interface VmNames {
  readonly uuid: string;
  /** `instance-0000002a`; null when not known. */
  readonly internalName: string | null;
  readonly displayName: string | null;
}

export interface VmMatches {
  /** Label value to server uuid. */
  readonly byLabel: ReadonlyMap<string, string>;
  readonly unknown: readonly string[];
  /** Label values that fit several VMs: no data for any of them. */
  readonly ambiguous: readonly string[];
}

/** Uuids are compared without regard to case, names exactly. */
export function matchVms(labels: Iterable<string>, vms: readonly VmNames[], type: VmLabelType): VmMatches {
  const nameOf = (vm: VmNames): string | null => {
    switch (type) {
      case 'nova_instance_uuid':
        return vm.uuid.toLowerCase();
      case 'nova_internal_name':
        return vm.internalName;
      case 'nova_display_name':
        return vm.displayName;
    }
  };
  const named = new Map<string, Set<string>>();
  for (const vm of vms) {
    const name = nameOf(vm);
    if (name !== null) named.set(name, (named.get(name) ?? new Set()).add(vm.uuid));
  }
  const byLabel = new Map<string, string>();
  const unknown: string[] = [];
  const ambiguous: string[] = [];
  for (const label of new Set(labels)) {
    const found = named.get(type === 'nova_instance_uuid' ? label.toLowerCase() : label);
    if (found === undefined) unknown.push(label);
    else if (found.size === 1) for (const uuid of found) byLabel.set(label, uuid);
    else ambiguous.push(label);
  }
  return { byLabel, unknown, ambiguous };
}
