/**
 * Every cause that status can report, and the causal order between them. A finding is a consequence, and is not reported
 * by itself, while a cause that explains it is present at the same place: where both name an aggregate, a service, a
 * host ..., they must name the same one.
 */

import { SIZES_REMEDY } from '@kronos/contracts';
import { remedyOfReason } from '@kronos/facts';

/** Where something is. */
export type Place = {
  readonly service?: string;
  readonly instance?: string;
  readonly check?: string;
  readonly stream?: string;
  readonly aggregate?: string;
  readonly policy?: string;
  readonly host?: string;
  readonly server?: string;
  readonly group?: string;
  readonly sink?: string;
  readonly task?: string;
  readonly plan?: string;
  /** Code of a reason: of an observation's problem, of a decision's warning. */
  readonly reason?: string;
  /** Sequence on KRONOS_LOG. */
  readonly event?: string;
  /** Code and name of a thing that is waited for. */
  readonly wait?: string;
};

export type Cause = {
  /** `alarm`: somebody has to act. `info`: worth knowing; all is well nevertheless. */
  readonly severity: 'alarm' | 'info';
  /** The remedy, as an imperative. */
  readonly remedy: string;
  /** Section of docs/runbook.md. */
  readonly section: string;
  /** Findings that differ in these are reported on separate lines; all others of the code share one. */
  readonly apart: readonly (keyof Place)[];
  /** The findings that it explains; `everything`: all others. */
  readonly explains: readonly string[] | 'everything';
};

/** The work that stops when a service does not work, by the service that each finding names. */
const work = [
  'snapshot-none',
  'cycle-slow',
  'snapshot-late',
  'snapshot-undecided',
  'plan-undispatched',
  'plan-expired',
  'task-unstarted',
  'move-long',
  'resize-late',
  'abort-unanswered',
  'close-waits',
  'wait-long',
] as const;

/** The work that writes to the event log. */
const workAfterSnapshots = work.filter(
  (code) => code !== 'snapshot-none' && code !== 'cycle-slow' && code !== 'snapshot-late',
);

/** Causes that follow while OpenStack cannot be read. */
const withoutOpenStack = [
  'service-unready',
  'observation-problem',
  'ports-unread',
  'host-unknown',
  'policy-no-destination',
  ...work,
] as const;

export const causes = {
  // The event log.
  'nats-unreachable': {
    severity: 'alarm',
    remedy: 'Start a NATS server of [nats] servers, or correct the addresses and TLS options.',
    section: 'nats-unreachable',
    apart: [],
    explains: 'everything',
  },
  'nats-refused': {
    severity: 'alarm',
    remedy: 'Give this command the credentials of a NATS user that may read (operator or viewer).',
    section: 'nats-refused',
    apart: [],
    explains: 'everything',
  },
  'not-provisioned': {
    severity: 'alarm',
    remedy: 'Run `kronos provision`.',
    section: 'not-provisioned',
    apart: [],
    explains: 'everything',
  },
  'jetstream-unavailable': {
    severity: 'alarm',
    remedy:
      'Look at the disks and the log of the NATS servers: JetStream is out of disk space, disabled, or without a leader (`nats server report jetstream`).',
    section: 'jetstream-unavailable',
    apart: [],
    explains: 'everything',
  },
  'log-in-doubt': {
    severity: 'alarm',
    remedy: 'Confirm the log: `kronos archive restore DIRECTORY`, or `kronos provision --new-log`.',
    section: 'kronosnotready',
    apart: [],
    explains: ['service-unready', 'event-unreadable', ...work],
  },
  'checkpoint-wrong': {
    severity: 'alarm',
    remedy:
      'Change the NATS credentials of the ledger, check the plans since the service started (`kronos plans`), then restart it.',
    section: 'kronoscheckpointwrong',
    apart: [],
    explains: [],
  },
  'storage-full': {
    severity: 'alarm',
    remedy: 'Free disk space on the NATS servers, or raise max_file of their JetStream.',
    section: 'storage-full',
    apart: [],
    explains: ['append-refused', 'stream-full', 'log-full', 'service-unready', ...work],
  },
  'log-full': {
    severity: 'alarm',
    remedy: 'Raise [nats] log_max_bytes on all services and run `kronos provision`.',
    section: 'kronoslogfull',
    apart: [],
    explains: ['append-refused', 'stream-filling', 'service-unready', ...workAfterSnapshots],
  },
  'stream-full': {
    severity: 'alarm',
    remedy: 'Raise the limit of this stream in [nats] and run `kronos provision`.',
    section: 'stream-full',
    apart: ['stream'],
    explains: [
      'append-refused',
      'stream-filling',
      'service-unready',
      'snapshot-none',
      'cycle-slow',
      'snapshot-late',
      'plan-undispatched',
    ],
  },
  'stream-filling': {
    severity: 'alarm',
    remedy: 'Raise the limit of this stream in [nats] and run `kronos provision` before it is full.',
    section: 'kronoslogfilling',
    apart: ['stream'],
    explains: [],
  },
  'append-refused': {
    severity: 'alarm',
    remedy: 'Look at the disks and the log of the NATS servers: a server without disk space does not answer.',
    section: 'append-refused',
    apart: [],
    explains: ['service-unready', ...work],
  },
  'event-unreadable': {
    severity: 'alarm',
    remedy:
      'Install the version of Kronos that wrote the event, readers first. If no version can read it: kronos log skip, as the NATS user custodian.',
    section: 'kronosunreadableevents',
    apart: ['event'],
    explains: ['snapshot-undecided', 'plan-undispatched'],
  },

  // Clocks.
  'local-clock': {
    severity: 'alarm',
    remedy: 'Set the clock of this machine (chrony, ntp): the ages shown are wrong until then.',
    section: 'kronosclockskew',
    apart: [],
    explains: ['clock-skew', 'service-missing', 'replica-lost', ...work],
  },
  'clock-skew': {
    severity: 'alarm',
    remedy: 'Set the clock of that machine and of the NATS servers (chrony, ntp).',
    section: 'kronosclockskew',
    apart: [],
    explains: ['service-unready', 'snapshot-late', 'snapshot-undecided'],
  },

  // Services.
  'services-unknown': {
    severity: 'alarm',
    remedy: 'Run `kronos provision` of this version, and allow the NATS user of this command to read KRONOS_SERVICES.',
    section: 'services-unknown',
    apart: [],
    explains: [],
  },
  'service-missing': {
    severity: 'alarm',
    remedy: 'Start it; the last lines of its log show why it ended.',
    section: 'kronosheartbeatsmissing',
    apart: [],
    explains: ['service-unready', ...work],
  },
  'openstack-unread': {
    severity: 'alarm',
    remedy: 'Restore the named OpenStack API; `kronos config check` tries each call.',
    section: 'openstack-unread',
    apart: [],
    explains: withoutOpenStack,
  },
  'openstack-refused': {
    severity: 'alarm',
    remedy:
      'Correct the credentials of [nova] (or of its cloud in clouds.yaml), and give the user the roles of deploy/openstack.',
    section: 'openstack-refused',
    apart: [],
    explains: ['openstack-unread', ...withoutOpenStack],
  },
  'prometheus-refused': {
    severity: 'alarm',
    remedy: 'Correct the credentials and headers in [prometheus]; the answer says what the server misses.',
    section: 'prometheus-refused',
    apart: [],
    explains: [
      'prometheus-unread',
      'service-unready',
      'policy-skipped',
      'policy-no-host',
      'policy-no-server',
      'policy-few-servers',
    ],
  },
  'prometheus-unread': {
    severity: 'alarm',
    remedy: 'Restore Prometheus, or correct [prometheus]; `kronos config check` runs each query once.',
    section: 'prometheus-unread',
    apart: [],
    explains: [
      'service-unready',
      'cycle-slow',
      'snapshot-late',
      'policy-skipped',
      'policy-no-host',
      'policy-no-server',
      'policy-few-servers',
    ],
  },
  'options-conflict': {
    severity: 'alarm',
    remedy: 'Give all planners the same kronos.conf and restart those that started earlier.',
    section: 'replicas-differ',
    apart: [],
    explains: ['replicas-differ'],
  },
  'service-unready': {
    severity: 'alarm',
    remedy: 'Look at the log of that service.',
    section: 'kronosnotready',
    apart: ['check'],
    explains: [...work],
  },
  'sink-failing': {
    severity: 'alarm',
    remedy: 'Look at the receiver; `kronos notify test NAME` sends one message and shows the answer.',
    section: 'kronossinkdead',
    apart: ['sink'],
    explains: [],
  },
  'replica-lost': {
    severity: 'info',
    remedy: 'Nothing to do if it was replaced: another instance serves the same aggregates.',
    section: 'kronosheartbeatsmissing',
    apart: ['service'],
    explains: [],
  },
  'replicas-differ': {
    severity: 'info',
    remedy: 'Give all replicas of a service the same kronos.conf.',
    section: 'replicas-differ',
    apart: ['service'],
    explains: [],
  },
  'versions-differ': {
    severity: 'info',
    remedy: 'Finish the upgrade.',
    section: 'replicas-differ',
    apart: [],
    explains: [],
  },

  // Observation.
  'snapshot-none': {
    severity: 'alarm',
    remedy: 'Look at the log of the scorer.',
    section: 'kronosnosnapshots',
    apart: [],
    explains: [],
  },
  'cycle-slow': {
    severity: 'alarm',
    remedy:
      'Find out why what the text names takes so long (`kronos config check` calls each API once), or raise [engine] evaluation_interval.',
    section: 'kronoscyclesskipped',
    apart: [],
    explains: ['snapshot-late'],
  },
  'snapshot-late': {
    severity: 'alarm',
    remedy: 'Look at the log of the scorer.',
    section: 'kronosnosnapshots',
    apart: [],
    explains: [],
  },
  'snapshot-unjudged': {
    severity: 'alarm',
    remedy: 'Upgrade the scorer.',
    section: 'snapshot-unjudged',
    apart: [],
    explains: [],
  },
  'observation-problem': {
    severity: 'alarm',
    remedy: 'Resolve the problem: the aggregate is not planned until then.',
    section: 'kronosobservationproblem',
    apart: ['aggregate', 'reason'],
    explains: ['policy-no-destination'],
  },
  'cell-down': {
    severity: 'alarm',
    remedy:
      'Repair the database of the cell, or its way to nova-api: until then Nova lists no hypervisors, and no aggregate is planned.',
    section: 'cell-down',
    apart: [],
    explains: ['openstack-unread', ...withoutOpenStack, 'server-stuck'],
  },
  'ports-unread': {
    severity: 'alarm',
    remedy:
      'Restore Neutron and give the user of [nova] the admin role there, or set [nova] sriov_ports = ignore where no VM has an SR-IOV port.',
    section: 'ports-unread',
    apart: ['aggregate'],
    explains: [],
  },
  'computes-down': {
    severity: 'alarm',
    remedy:
      'Look at the message bus (RabbitMQ) and at nova-conductor before the hosts: every nova-compute reports through them.',
    section: 'computes-down',
    apart: [],
    explains: [
      'host-down',
      'host-broken',
      'server-stuck',
      'policy-no-destination',
      'policy-skipped',
      'policy-no-host',
      'policy-no-server',
      'policy-few-servers',
      'decision-warning',
    ],
  },
  'host-down': {
    severity: 'alarm',
    remedy: 'Repair the host, or disable its nova-compute service.',
    section: 'kronoshostdown',
    apart: ['aggregate'],
    explains: ['server-stuck', 'host-broken', 'policy-no-destination', 'failover-room'],
  },
  'host-unknown': {
    severity: 'alarm',
    remedy: 'Find out why Nova does not report the service: a host in an unknown state receives no VM.',
    section: 'kronoshostdown',
    apart: ['aggregate'],
    explains: ['policy-no-destination'],
  },
  'host-disabled': {
    severity: 'info',
    remedy: 'Nothing to do if somebody disabled it on purpose: it receives no VM.',
    section: 'kronoshostdown',
    apart: ['aggregate'],
    explains: [],
  },
  'policy-no-destination': {
    severity: 'alarm',
    remedy: 'Enable a host of the aggregate.',
    section: 'kronoshostdown',
    apart: ['aggregate'],
    explains: [],
  },
  'policy-no-host': {
    severity: 'alarm',
    remedy: 'Correct imbalance_query or host_label; `kronos config check` shows the labels that the series have.',
    section: 'kronospolicymatchesnothing',
    apart: ['reason'],
    explains: ['policy-skipped'],
  },
  'policy-no-server': {
    severity: 'alarm',
    remedy:
      'Correct vm_profile_query, vm_profile_label or vm_profile_label_type; `kronos config check` shows the labels that the series have.',
    section: 'kronospolicymatchesnothing',
    apart: ['policy'],
    explains: [],
  },
  'policy-server-values': {
    severity: 'alarm',
    remedy:
      'Make vm_profile_query the share of its host that a VM uses, from 0 to 1; `kronos config check` shows the range.',
    section: 'policy-server-values',
    apart: ['policy', 'reason'],
    explains: [],
  },
  'policy-profile-sum': {
    severity: 'alarm',
    remedy: 'Bring vm_profile_query to the share of its host that a VM uses, from 0 to 1.',
    section: 'policy-profile-sum',
    apart: ['policy', 'reason'],
    explains: [],
  },
  'policy-host-load': {
    severity: 'info',
    remedy: 'Look at what else runs on these hosts; Kronos can move only the load of VMs.',
    section: 'policy-profile-sum',
    apart: ['policy'],
    explains: [],
  },
  'policy-sizes-assumed': {
    severity: 'info',
    remedy: SIZES_REMEDY,
    section: 'policy-profile-sum',
    apart: ['policy'],
    explains: [],
  },
  'threshold-unreachable': {
    severity: 'info',
    remedy:
      'Raise the threshold of the policy, or let the VMs move that the line names. Load of no VM with a value moves once the exporter of VMs runs on that host.',
    section: 'threshold-unreachable',
    apart: ['policy'],
    explains: [],
  },
  'policy-few-servers': {
    severity: 'info',
    remedy: 'Run the exporter of VMs on every host; `kronos advise` names the VMs without a value.',
    section: 'policy-server-values',
    apart: ['policy'],
    explains: [],
  },
  'policy-answer-partial': {
    severity: 'info',
    remedy: 'Repair the store that the warning names.',
    section: 'policy-server-values',
    apart: ['policy'],
    explains: [],
  },
  'policy-skipped': {
    severity: 'alarm',
    remedy: 'Repair the exporter or the query; `kronos config check` names the hosts.',
    section: 'kronospolicywithoutdata',
    apart: ['aggregate', 'reason'],
    explains: [],
  },

  // Decisions and moves.
  'predictions-off': {
    severity: 'alarm',
    remedy: 'Compare the plans of the aggregate with `kronos explain plan PLAN`: predicted beside measured.',
    section: 'predictions-off',
    apart: ['aggregate', 'policy', 'reason'],
    explains: [],
  },
  'foreign-move': {
    severity: 'info',
    remedy: 'Nothing to do if somebody wants the VM there: Kronos leaves it alone for foreign_wait.',
    section: 'foreign-moves',
    apart: ['aggregate'],
    explains: [],
  },
  'foreign-moves': {
    severity: 'alarm',
    remedy:
      'Find who moves these VMs (`openstack server migration list`) and let one of both balance; or set [engine] foreign_moves = ignore.',
    section: 'foreign-moves',
    apart: ['aggregate'],
    explains: [],
  },
  'failover-room': {
    severity: 'alarm',
    remedy:
      'Add a host or free room: `kronos headroom --proof` shows where each VM would go. Kronos restores the room where moves can.',
    section: 'kronosfailoverroom',
    apart: ['aggregate'],
    explains: [],
  },
  'decision-slow': {
    severity: 'alarm',
    remedy:
      'Give the planner more CPU ([engine] search_threads) or raise [engine] evaluation_interval; where less work helps, lower [engine] search_work_limit.',
    section: 'decision-slow',
    apart: ['aggregate'],
    explains: ['snapshot-undecided'],
  },
  'snapshot-stored-late': {
    severity: 'alarm',
    remedy:
      "Find out what is slow: the machine of the scorer, or the disks and the network of the NATS servers. Compare the scorer's clock, too (`chronyc tracking`).",
    section: 'snapshot-stored-late',
    apart: ['aggregate'],
    explains: ['snapshot-undecided'],
  },
  'snapshot-undecided': {
    severity: 'alarm',
    remedy: 'Look at the log of the planner.',
    section: 'kronosnodecisions',
    apart: [],
    explains: [],
  },
  'plan-undispatched': {
    severity: 'alarm',
    remedy: 'Look at the log of the planner.',
    section: 'plan-undispatched',
    apart: [],
    explains: ['task-unstarted'],
  },
  'plan-expired': {
    severity: 'alarm',
    remedy: 'Look at the log of the executor.',
    section: 'kronostasksnotstarted',
    apart: [],
    explains: [],
  },
  'task-unstarted': {
    severity: 'alarm',
    remedy: 'Look at the log of the executor that serves the aggregate.',
    section: 'kronostasksnotstarted',
    apart: [],
    explains: [],
  },
  'move-long': {
    severity: 'alarm',
    remedy: 'Compare with `openstack server migration list`; `kronos abort TASK` asks Nova to stop it.',
    section: 'move-long',
    apart: ['task'],
    explains: [],
  },
  'resize-late': {
    severity: 'alarm',
    remedy: 'Check the guest, then run `kronos cells confirm TASK` or `kronos cells revert TASK`.',
    section: 'kronosresizelate',
    apart: ['task'],
    explains: ['move-long', 'plan-expired'],
  },
  'server-in-error': {
    severity: 'alarm',
    remedy:
      'Check whether the guest runs, then set its state or reboot it; `kronos quarantine release VM` removes this line.',
    section: 'kronosserverinerror',
    apart: ['server'],
    explains: ['server-stuck', 'decision-warning'],
  },
  'move-poisonous': {
    severity: 'alarm',
    remedy:
      'Look at the log of the executor for the task id and upgrade it. If Nova shows that the VM does not migrate, end the task with `kronos close TASK --force`.',
    section: 'kronosdeadletter',
    apart: ['task'],
    explains: ['move-long', 'plan-expired'],
  },
  'abort-refused': {
    severity: 'alarm',
    remedy:
      'Compare with `openstack server migration list`; `kronos close TASK` ends the task when Nova shows that it no longer works on the VM.',
    section: 'kronosabortrefused',
    apart: ['task'],
    explains: ['abort-unanswered', 'move-long', 'plan-expired'],
  },
  'close-waits': {
    severity: 'alarm',
    remedy:
      'Check in Nova and on both hosts that nothing moves the VM, then run `kronos close TASK --force`: a migration that runs on counts towards no limit.',
    section: 'kronosabortrefused',
    apart: ['task'],
    explains: ['abort-refused', 'abort-unanswered', 'move-long', 'plan-expired'],
  },
  'abort-unanswered': {
    severity: 'alarm',
    remedy: 'Look at the logs of the executor and of the source compute: Nova may have refused the abort.',
    section: 'kronosabortrefused',
    apart: ['task'],
    explains: ['move-long'],
  },
  'move-forced': {
    severity: 'alarm',
    remedy: 'Turn [executor] force off.',
    section: 'kronosforcedmigration',
    apart: [],
    explains: [],
  },
  'host-broken': {
    severity: 'alarm',
    remedy:
      'Repair the host and run `kronos host release HOST`, or disable its nova-compute service; `kronos explain host HOST` shows the failures.',
    section: 'kronoshostsbroken',
    apart: ['host'],
    explains: ['server-stuck'],
  },
  'migration-abandoned': {
    severity: 'alarm',
    remedy: "Set the row to error in the database of its cell: UPDATE migrations SET status='error' WHERE id=ID.",
    section: 'migration-abandoned',
    apart: ['aggregate'],
    explains: [],
  },
  'drain-blocked': {
    severity: 'alarm',
    remedy: 'Remove the cause in the text, or end the drain: `kronos undrain HOST`.',
    section: 'drain-blocked',
    apart: ['host'],
    explains: [],
  },
  'wait-long': {
    severity: 'alarm',
    remedy: 'Look at what it waits for: `kronos status`.',
    section: 'wait-long',
    apart: ['wait'],
    explains: [],
  },
  'event-skipped': {
    severity: 'info',
    remedy: 'Nothing to do: Kronos ignores these events.',
    section: 'kronosunreadableevents',
    apart: ['aggregate'],
    explains: [],
  },
  'server-stuck': {
    severity: 'alarm',
    remedy: remedyOfReason('no-destination'),
    section: 'kronosserversstuck',
    apart: ['aggregate', 'host', 'reason'],
    explains: [],
  },
  'decision-warning': {
    severity: 'alarm',
    remedy: '`kronos explain cycle` shows the decision.',
    section: 'kronosserversstuck',
    apart: ['aggregate', 'reason', 'server', 'host', 'group'],
    explains: [],
  },
  'group-broken': {
    severity: 'info',
    remedy: 'Set [engine] enforce_hard_affinity = true: Kronos then moves VMs until the rules hold.',
    section: 'group-broken',
    apart: ['aggregate'],
    explains: [],
  },
  'decision-note': {
    severity: 'info',
    remedy: 'Nothing to do: `kronos explain cycle` shows the decision.',
    section: 'decision-note',
    apart: ['aggregate', 'reason', 'group'],
    explains: [],
  },
} as const satisfies Record<string, Cause>;

export type CauseCode = keyof typeof causes;
