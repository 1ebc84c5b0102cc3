/**
 * Reasons that the planner finds in a snapshot and the executor in the cloud or on the log: one code and one meaning for both. The
 * lists of the planner (`reasonMeanings` of placement), of tasks and of waits take their rows from here. The texts are part of
 * recorded decisions: a change of one needs a new planner version.
 */
export const sharedReasons = {
  'record-only': 'The snapshot was taken to be kept and is never planned.',
  clock: 'The clock of this service differs too much from that of NATS.',
  paused: 'An operator paused the aggregate.',
  'unreadable-event': 'The log holds an event that this version does not understand.',
  'host-in-two-aggregates': 'A host is in more than one aggregate of the configured scope.',
  'vm-source-down': "The VM's host is down.",
  'vm-source-disabled': "The VM's host is disabled: only an evacuation moves the VM.",
  'vm-status': 'The VM is neither ACTIVE nor PAUSED.',
  'vm-power-state': 'The guest is neither running nor paused: Nova refuses to live-migrate it.',
  'vm-busy': 'The VM has a task state.',
  'vm-locked': 'The VM is locked.',
  'vm-opted-out': 'The VM is opted out by metadata or a tag.',
  'vm-accelerator': 'Nova cannot live-migrate a VM with an accelerator.',
  'vm-sriov-port':
    'The VM has an SR-IOV port: Nova unplugs it for the time of a live migration, and the guest loses the link.',
  'vm-quarantined': 'The VM is quarantined after a failed move.',
  'vm-quarantined-by-operator': 'An operator put the VM into quarantine.',
  'vm-outside-window': "The VM's own window is closed.",
  'vm-window-unreadable': "The VM's own window cannot be read.",
  'cells-off': 'Moves between cells are off for the aggregate: [cells] aggregates does not name it.',
  'cell-policy': "Nova's policy does not grant the executor moves between cells.",
  'cell-accelerator': 'Nova cannot move a VM with an accelerator to another cell.',
  'cell-pci-device': 'Nova cannot be relied on to move a VM with a PCI device to another cell.',
  'cell-status': 'Nova moves a VM to another cell only while it is ACTIVE or SHUTOFF.',
  'flavor-unknown': 'The flavor that the map names does not exist.',
  'host-down': "The host's nova-compute is not up.",
  'host-disabled': "The host's nova-compute is disabled.",
  'host-broken': 'Too many moves to the host failed within a short time.',
  'other-zone': 'The host is in another availability zone.',
  'pinned-zone': 'The VM is pinned to another availability zone.',
  'refused-before':
    'Nova refused the host for a VM of this shape, and neither its VMs, its hypervisor version nor its traits have changed since.',
  capacity: 'The host has too little free capacity.',
  'numa-fit': "The host's NUMA cells have too few free CPUs, memory or huge pages for the VM.",
  'numa-unknown': "The host's NUMA cells, or those that the VM needs, are unknown.",
  'anti-affinity': 'The host holds as many members of the anti-affinity group as it may.',
  affinity: 'Not every other member of the affinity group is on the host.',
  'affinity-gathered':
    "All members of the affinity group are on the VM's host, and Nova refuses every other host for it.",
  'server-group-policy-unknown':
    'A server group has a policy that this version does not know, so Kronos could not respect it.',
} as const;

/** Codes that tasks had before, each with the one that says the same now. Events on the log keep theirs. */
export const formerCodes = {
  'server-locked': 'vm-locked',
  'server-busy': 'vm-busy',
  'server-power-state': 'vm-power-state',
  'server-state': 'vm-status',
  excluded: 'vm-opted-out',
  'window-unreadable': 'vm-window-unreadable',
  quarantined: 'vm-quarantined',
  'source-down': 'vm-source-down',
  'source-disabled': 'vm-source-disabled',
  'destination-down': 'host-down',
  'destination-disabled': 'host-disabled',
  'destination-full': 'capacity',
  'zone-pinned': 'pinned-zone',
  'group-apart': 'anti-affinity',
  'group-together': 'affinity',
  'group-immovable': 'affinity-gathered',
  'group-policy': 'server-group-policy-unknown',
  'two-aggregates': 'host-in-two-aggregates',
} as const satisfies Record<string, keyof typeof sharedReasons>;
