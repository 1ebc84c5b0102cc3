import { sharedReasons as shared } from '@kronos/facts';
import { float } from './base/array.ts';

/**
 * The only list of the planner's reasons, each with its meaning in one line. A code never changes its meaning. docs/reasons.md of this
 * package is generated from here, and a test keeps it equal.
 */
export const reasonMeanings = {
  // Gates: the cycle ended before planning.
  'record-only': shared['record-only'],
  'unreadable-event': shared['unreadable-event'],
  paused: shared.paused,
  'awaiting-approval': 'A proposed plan waits for an answer.',
  'snapshot-problems': 'The snapshot names problems that make the aggregate unplannable in this cycle.',
  'host-in-two-aggregates': shared['host-in-two-aggregates'],
  settling: 'The snapshot was observed too soon after the end of the last move.',
  cooldown: 'The aggregate cools down after a release, a rejection or an expiry.',
  'policies-skipped': 'A policy takes no part and require_all_policies is set.',

  // Outcomes of planning.
  planned: 'There is a plan.',
  'outside-window': 'A plan exists, but no move may start now: outside the windows, or in a blackout.',
  balanced: 'No policy detects an imbalance and nothing else needs doing.',
  evacuating: 'No policy detects an imbalance. Evacuations have not ended.',
  stuck: 'No policy detects an imbalance. VMs that must move cannot.',
  'foreign-moves':
    'Others moved several VMs that Kronos had moved: nothing is balanced until foreign_wait has passed for all of them but one.',
  'foreign-unknown':
    'Nova did not list its completed migrations: moves of others are unknown, so nothing is balanced in this cycle.',
  'no-contention': 'No host is above act_above, so the policies that have it ask for no moves.',
  'not-sustained': 'The imbalance has not been detected in enough evaluations in a row yet.',
  'no-improvement': 'No legal moves were found that gain min_gain or more.',
  'within-noise':
    'The noise of the last cycles explains the gain of the moves that were found, and no moves reach the targets.',
  'budget-too-small': 'No part of the course fits the budget: its smallest exchange needs more moves.',
  'search-limit': 'The search reached search_work_limit before it found a better placement.',
  'expected-to-pass': 'On former days this imbalance ended by itself, and moves would not end it sooner.',
  'expected-to-return': 'On former days the load changed within the horizon in a way that would undo the plan.',
  'no-drain': 'No host can be drained.',
  'no-budget': 'Moves in flight use the whole budget.',
  'nothing-scored': 'Every policy is skipped, so nothing is balanced.',
  'partly-scored': 'No policy that is scored detects an imbalance. The imbalance of the skipped policies is unknown.',
  'rules-only': 'Balancing is off and no rule asks for a move.',

  // A policy takes no part.
  'policy-not-read': 'The snapshot holds no answer to a query of the policy.',
  'policy-stale': 'The answer about the hosts is stale.',
  'policy-partial': 'The answer about the hosts misses hosts that are up.',
  'policy-unreachable': 'Prometheus did not answer.',
  'policy-error': 'Prometheus refused the query, or two series claim one host.',
  'policy-out-of-range': 'A host value is outside [0,1].',
  'policy-bad-size': 'A host size is not above 0, or less than 1/4096 of the largest.',
  'policy-no-destination': 'No host may be a destination, so there is no imbalance to measure.',

  // A VM does not move.
  'vm-source-down': shared['vm-source-down'],
  'vm-source-disabled': shared['vm-source-disabled'],
  'vm-source-unknown': "The state of the VM's host is unknown.",
  'vm-status': shared['vm-status'],
  'vm-power-state': shared['vm-power-state'],
  'vm-busy': shared['vm-busy'],
  'vm-verify-resize': 'The VM waits for somebody to confirm or revert its resize or cold migration.',
  'vm-migrating': 'A migration of the VM has not ended.',
  'vm-seen-twice': 'The VM was seen on two hosts while the lists were read.',
  'vm-locked': shared['vm-locked'],
  'vm-immovable': 'The cluster file says that the VM does not move.',
  'vm-opted-out': shared['vm-opted-out'],
  'vm-vtpm': 'Nova cannot live-migrate a VM with a virtual TPM.',
  'vm-encrypted-memory': 'Nova cannot live-migrate a VM with encrypted memory.',
  'vm-accelerator': shared['vm-accelerator'],
  'vm-pci-device': 'Nova cannot be relied on to live-migrate a VM with a PCI device.',
  'vm-vgpu': 'Nova cannot be relied on to live-migrate a VM with a virtual GPU.',
  'vm-sriov-port': shared['vm-sriov-port'],
  'vm-ports-unknown': 'The ports of the VM could not be read: one may be an SR-IOV port.',
  'vm-no-profile': 'A policy whose fallback is skip has no sample of the VM.',
  'vm-in-flight': 'A released move of the VM has not ended.',
  'vm-cooling-down': 'The VM was released to be moved a short while ago.',
  'vm-quarantined': shared['vm-quarantined'],
  'vm-quarantined-by-operator': shared['vm-quarantined-by-operator'],
  'vm-moved-by-others':
    'Others moved the VM after Kronos had moved it: only an evacuation moves it before foreign_wait has passed.',
  'vm-too-young': 'The VM is younger than min_instance_age, or of unknown age.',
  'vm-outside-window': shared['vm-outside-window'],
  'vm-window-unreadable': shared['vm-window-unreadable'],
  'vm-in-plan': 'The plan moves the VM already.',

  // A plan between cells.
  'cells-off': shared['cells-off'],
  'cells-unknown-name': 'The request names an aggregate, a host or a VM that does not exist.',
  'cells-none': 'None of the VMs that were asked for can move.',

  // A VM does not move to another cell.
  'cell-status': shared['cell-status'],
  'cell-policy': shared['cell-policy'],
  'cell-facts-unknown': 'The volumes and ports of the VM could not be read.',
  'cell-volumes': 'The VM has volumes, and the cells do not share volumes.',
  'cell-ports': 'The VM has ports, and the cells do not share networks.',
  'cell-port-request':
    'A port of the VM requests resources, such as bandwidth: Nova cannot move such a VM to another cell.',
  'cell-accelerator': shared['cell-accelerator'],
  'cell-vtpm': 'The state of a virtual TPM does not follow a VM to another cell.',
  'cell-pci-device': shared['cell-pci-device'],
  'cell-image-size': 'The image of the local disk would be larger than the image store takes.',
  'flavor-unknown': shared['flavor-unknown'],
  'flavor-same': 'The flavor map names the flavor that the VM has.',
  'flavor-disk': 'The disk of the new flavor is smaller: Nova does not shrink a local disk.',
  'flavor-not-confined': 'A host outside the target takes the new flavor too, and Nova chooses the host of a resize.',

  // A host does not take a VM.
  'host-is-source': 'The VM is already on the host.',
  'host-down': shared['host-down'],
  'host-forced-down': "The host's nova-compute is forced down.",
  'host-disabled': shared['host-disabled'],
  'host-draining': 'An operator asked for the host to be drained.',
  'host-unknown': 'The service state of the host is unknown.',
  'host-broken': shared['host-broken'],
  'host-capacity-unknown': 'Placement gave no inventory of the host.',
  'other-zone': shared['other-zone'],
  'pinned-zone': shared['pinned-zone'],
  'pin-unknown': 'The cloud cannot tell whether the VM is pinned to its availability zone.',
  'other-cell': 'The host is in another cell.',
  'cell-unknown': 'The cell of the host is unknown, or the configuration names two.',
  'not-in-target': 'The host is not in the aggregate that the VMs go to.',
  'other-hypervisor': 'The host runs another type of hypervisor.',
  'older-hypervisor': "The host's hypervisor is older than the source's.",
  'missing-trait': 'The host lacks a trait that the flavor requires, or has one that it forbids.',
  'host-not-allowed': 'The cluster file does not allow the VM on the host.',
  'refused-before': shared['refused-before'],
  capacity: shared.capacity,
  'numa-fit': shared['numa-fit'],
  'numa-unknown': shared['numa-unknown'],
  'cpu-traits':
    "The host's CPUs lack a trait that those of the VM's host have, or the traits of one of the two are unknown.",
  'unit-limit': "The amount does not fit the host's min_unit, max_unit or step_size.",
  'anti-affinity': shared['anti-affinity'],
  affinity: shared.affinity,
  'affinity-gathered': shared['affinity-gathered'],

  // A request for room ends without a plan.
  'fits-already': 'The new VMs fit already: no moves are needed.',
  'no-room': 'No moves make room for all new VMs.',
  'no-room-found': 'No plan was found that makes room for all new VMs. The search reached its limit: one may exist.',
  'too-many-moves': 'More moves would be needed than one plan can hold.',

  // A legal move is not taken.
  'failover-room': 'The moves would leave too little room for the failure of failover_hosts hosts.',
  'past-threshold': 'The move would worsen a policy and leave it above its threshold.',
  'no-gain': 'The move gains less than min_gain.',
  'capacity-threshold': "The host's capacity value would reach the policy's capacity_threshold.",
  'not-better': 'Other moves gain more.',
  'not-drained': 'The host is not the one to be emptied.',

  // Why a step is taken.
  'leaves-disabled-host': 'The host is disabled: its VMs leave.',
  'repairs-anti-affinity': 'Members of an anti-affinity group share a host.',
  'repairs-affinity': 'Members of an affinity group are spread over hosts.',
  'returns-to-zone': 'The VM is pinned to another availability zone than the one that it is in.',
  'relieves-host': 'More is claimed on the host than its capacity.',
  'lowers-imbalance': 'The move lowers the combined imbalance.',
  'part-of-course':
    'The move is part of a course that reaches the targets in later cycles. Its own cycle does not lower the imbalance.',
  'makes-room': 'The move makes room for another one of the plan.',
  'drains-host': 'The host is emptied.',
  'parks-vm': 'The VM waits on a third host until its destination has room.',

  'restores-failover-room': 'The move restores room for the failure of a host.',
  'makes-capacity': 'An operator asked for room for new VMs.',

  'leaves-cell': 'An operator asked for the VM to leave its cell or its old hardware.',

  // Ends and warnings.
  'drain-out-of-reach': "Not all of the host's VMs could leave within pack_reach_cycles budgets.",
  'drain-headroom': 'Draining the host would leave too little room for the failure of hosts.',
  'drain-unmovable': 'The host has VMs that cannot move.',
  'repair-impossible': 'No legal move repairs the group.',
  'host-over-capacity': 'More is claimed on the host than its capacity, and no move relieves it.',
  'outside-pinned-zone': 'The VM is outside of the availability zone that it is pinned to, and no move brings it back.',
  'groups-contradict': 'Two groups contradict each other: no placement keeps both rules.',
  'threshold-unreachable': 'The bound shows that no moves of any number reach the threshold of the policy.',
  'no-destination': 'No host takes the VM.',
  'budget-used': 'The budget of the cycle is used up.',
  'soft-rule-broken': 'The plan breaks the soft rule of the group, because the relief outweighs soft_penalty.',
  'no-forecast': 'The forecast is on, but former days say nothing about this imbalance.',
  'forecast-late': 'The forecast expected the imbalance to end by now: Kronos waits no longer.',
  'forecast-unearned': 'In the last week, waiting lost more time than it saved, up to the limit: Kronos does not wait.',
  'order-impossible': 'No order of moves keeps every state in between legal.',
} as const;

export type ReasonCode = keyof typeof reasonMeanings;

/** The meaning of a recorded code; the code itself when this version does not know it. */
export const meaningOf = (code: string): string => (reasonMeanings as Readonly<Record<string, string>>)[code] ?? code;

/** All codes, in the order of the list. */
export const reasonCodes = Object.keys(reasonMeanings) as readonly ReasonCode[];

/** A small number for a code, for the checker's hot path: its place in the list plus 1. 0 means no refusal. */
export const codeNumber: Readonly<Record<ReasonCode, number>> = Object.fromEntries(
  reasonCodes.map((code, i) => [code, i + 1]),
) as Record<ReasonCode, number>;

/** The code of a number given by {@link codeNumber}. @throws RangeError for any other number */
export function codeOfNumber(number: number): ReasonCode {
  const code = reasonCodes[number - 1];
  if (code === undefined) throw new RangeError(`no reason has the number ${number}`);
  return code;
}

/** Counts of refusals, by code number. */
export class RefusalCounts {
  /** By code number. */
  readonly counts = new Float64Array(reasonCodes.length + 1);

  add(number: number, times = 1): void {
    this.counts[number] = float(this.counts, number) + times;
  }

  /** @param counts of other refusals, by code number. */
  addAll(counts: Float64Array): void {
    counts.forEach((times, number) => {
      this.add(number, times);
    });
  }

  /** By code, sorted by code; only what was counted. */
  toRecord(): Record<string, number> {
    const entries: [string, number][] = [];
    for (const code of [...reasonCodes].sort()) {
      const count = float(this.counts, codeNumber[code]);
      if (count > 0) entries.push([code, count]);
    }
    return Object.fromEntries(entries);
  }
}
