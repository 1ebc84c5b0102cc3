import type { MovableDevice } from '@kronos/contracts';

/** Of a device that some hosts can live-migrate. */
const movable = (device: MovableDevice, condition: string): string =>
  `Add ${device} to [nova] movable_devices, if ${condition}. Otherwise stop the VM and move it cold with \`openstack server migrate VM\`.`;

/** The remedy for a move that is due and cannot be made, by the code of the reason. `VM` and `HOST` stand for names. */
const byCode: Readonly<Record<string, string>> = {
  'vm-locked': 'Run `openstack server unlock VM`, if nobody needs the lock.',
  'vm-opted-out': 'Remove the metadata or the tag, if nobody needs it.',
  'vm-window-unreadable': 'Correct kronos:window in its metadata or tags.',
  'vm-no-profile': 'Correct vm_profile_query, or set vm_profile_fallback: flavor_vcpu_ratio.',
  'vm-verify-resize':
    'Run `openstack server resize confirm VM` or `openstack server resize revert VM`, or ask its owner to.',
  'vm-quarantined':
    'Look at its failed move (`kronos tasks --ended --vm VM`), then run `kronos quarantine release VM`.',
  'vm-quarantined-by-operator':
    'Ask the person who put it there (`kronos quarantine list`), then run `kronos quarantine release VM`.',
  'vm-status':
    'Start it (`openstack server unrescue VM` if it is rescued), or move it cold: `openstack server migrate VM`, then `openstack server resize confirm VM`.',
  'vm-power-state':
    'Start its guest with `openstack server reboot --hard VM`, or stop the VM and move it cold with `openstack server migrate VM`.',
  'vm-source-down': 'Start nova-compute on its host, or rebuild the VM elsewhere with `openstack server evacuate VM`.',
  'vm-source-unknown': 'Find out why Nova does not report the nova-compute service of its host.',
  'vm-pci-device': movable('pci-device', 'its hosts can live-migrate it'),
  'vm-vgpu': movable('vgpu', 'its hosts can live-migrate it'),
  'vm-sriov-port': movable('sriov-port', 'its guest can do without the port during a move'),
  'vm-ports-unknown':
    'Run `kronos config check`, which says why its ports cannot be read, or set [nova] sriov_ports = ignore.',
  affinity:
    'Set [engine] soft_rules = penalty, if the group is a soft one, or move its VMs together by hand; `kronos explain vm VM` shows the refusal of each host.',
  'anti-affinity':
    'Enable or add a host that holds no member of the group, or set [engine] soft_rules = penalty, if it is a soft one; `kronos explain vm VM` shows the refusal of each host.',
  'affinity-gathered':
    'Delete the affinity group (`openstack server group delete`), if nobody needs it, or stop its VMs for the maintenance.',
  'host-disabled': 'Enable a host: `openstack compute service set --enable HOST nova-compute`.',
  'past-threshold': 'Set [engine] evacuation_thresholds = prefer.',
  'order-impossible': 'Make room on one of the hosts: the moves need a place in between.',
  'groups-contradict': 'Delete one of the two groups, or create the VMs again outside of it.',
  'host-over-capacity':
    'Add a host or free room on another one, or correct the allocation ratio and the reserved amounts of the host in nova.conf.',
  'outside-pinned-zone':
    'Make room in the zone that the VM is pinned to; `kronos explain vm VM` shows the refusal of each host.',
};

/** Nova moves such a VM only while it is stopped. */
const COLD = 'Nova cannot live-migrate such a VM: before maintenance of its host, stop it or move it by hand.';

/** No host takes it: which one comes closest is a question for the table of `explain vm`. */
const NO_HOST = 'Make room, enable a host, or move it by hand; `kronos explain vm VM` shows the refusal of each host.';

/** The remedy for the reason, as an imperative. */
export const remedyOfReason = (code: string): string => byCode[code] ?? (code.startsWith('vm-') ? COLD : NO_HOST);
