/**
 * Every name of Kronos' telemetry: spans, attributes, metrics. No other file defines names, so a dashboard can be written
 * from this file.
 */
import { errorTypes, families, phases, queryUses } from '@kronos/contracts';

/** Span names: few, and without ids. */
export const spans = {
  cycle: 'scorer.cycle',
  observe: 'scorer.observe',
  query: 'scorer.query',
  snapshotTaken: 'scorer.snapshot',
  fold: 'log.fold',
  append: 'log.append',
  decide: 'planner.decide',
  dispatch: 'planner.dispatch',
  task: 'executor.task',
  preflight: 'executor.preflight',
  migrate: 'executor.migrate',
  follow: 'executor.follow',
  postflight: 'executor.postflight',
  checkpoint: 'ledger.checkpoint',
  archive: 'ledger.archive',
  request: 'http.request',
} as const;
export type SpanName = (typeof spans)[keyof typeof spans];

/** Attributes of spans. Ids belong here and in logs, never in labels of metrics. */
export const attributes = {
  aggregate: 'kronos.aggregate',
  correlationId: 'kronos.correlation.id',
  snapshotId: 'kronos.snapshot.id',
  purpose: 'kronos.snapshot.purpose',
  planId: 'kronos.plan.id',
  taskId: 'kronos.task.id',
  attempt: 'kronos.task.attempt',
  phase: 'kronos.step.phase',
  policy: 'kronos.policy',
  query: 'db.query.text',
  outcome: 'kronos.outcome',
  reason: 'kronos.reason.code',
  basis: 'kronos.log.basis',
  sequence: 'kronos.log.sequence',
  steps: 'kronos.plan.steps',
  candidates: 'kronos.plan.candidates',
  hosts: 'kronos.hosts',
  servers: 'kronos.servers',
  serverId: 'kronos.server.id',
  sourceHost: 'kronos.host.source',
  destinationHost: 'kronos.host.destination',
  novaMigrationId: 'openstack.migration.id',
  novaRequestId: 'openstack.request.id',
  errorType: 'error.type',
} as const;

/** The values of a label: a closed list, or in words what bounds them. */
export type LabelValues = readonly string[] | { readonly bounded: string };

export interface MetricSpec {
  /** `gauges`: a gauge whose series come and go, such as one for each host. */
  readonly kind: 'counter' | 'gauge' | 'gauges' | 'histogram';
  /** As Prometheus shows it, with the unit; counters end in `_total`. */
  readonly name: string;
  /** UCUM: `s`, `By`, `1` or `{thing}`. */
  readonly unit: string;
  readonly help: string;
  readonly labels: Readonly<Record<string, LabelValues>>;
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

const AGGREGATE = { bounded: 'the aggregates in scope' } as const;
const POLICY = { bounded: 'the policies of the file' } as const;
const REASON = { bounded: 'the reason codes of the code' } as const;
const RESYNC = ['start', 'compared', 'left', 'tagged', 'untrusted', 'many', 'clock', 'cell-down'] as const;
/** The services of OpenStack whose requests are counted. */
export const OPENSTACK_APIS = ['keystone', 'neutron', 'nova', 'placement'] as const;
const SHORT = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;
const LONG = [1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400] as const;

/** Every metric. Instruments are made from this table: `metrics.plansDecided.add(1, {aggregate, ...})`. */
export const metricSpecs = {
  // Every service.
  ready: {
    kind: 'gauge',
    name: 'kronos_ready',
    unit: '1',
    help: '1 if the check passes, 0 if not: the checks of /readyz.',
    labels: { check: { bounded: 'the readiness checks of the service' } },
  },
  appends: {
    kind: 'counter',
    name: 'kronos_log_appends_total',
    unit: '{message}',
    help: 'Messages written to JetStream, by outcome; conflict: another writer was first; withdrawn: the message was too late.',
    labels: { family: families, outcome: ['appended', 'duplicate', 'conflict', 'withdrawn', 'failed'] },
  },
  foldSequence: {
    kind: 'gauge',
    name: 'kronos_log_fold_sequence',
    unit: '1',
    help: 'Sequence of the event log up to which this process has folded.',
    labels: {},
  },
  foldLag: {
    kind: 'gauge',
    name: 'kronos_log_fold_lag_events',
    unit: '{event}',
    help: 'Events of the log that this process has not folded yet.',
    labels: {},
  },
  foldUnreadable: {
    kind: 'counter',
    name: 'kronos_log_unreadable_total',
    unit: '{event}',
    help: 'Messages that this version does not understand.',
    labels: { family: families },
  },
  logBytes: {
    kind: 'gauge',
    name: 'kronos_log_bytes',
    unit: 'By',
    help: 'Size of the event log.',
    labels: {},
  },
  logMaxBytes: {
    kind: 'gauge',
    name: 'kronos_log_max_bytes',
    unit: 'By',
    help: 'Limit of the event log. When the log is full, nothing is planned.',
    labels: {},
  },
  clockSkew: {
    kind: 'gauge',
    name: 'kronos_clock_skew_seconds',
    unit: 's',
    help: "Difference between the clock of the service and the NATS server's; of the ledger also the largest recent one of an event's time.",
    labels: {},
  },
  // Scorer.
  cycleDuration: {
    kind: 'histogram',
    name: 'kronos_cycle_duration_seconds',
    unit: 's',
    help: "Time from the start of a cycle's reads to its snapshot on the stream.",
    labels: { aggregate: AGGREGATE },
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300],
  },
  cyclesSkipped: {
    kind: 'counter',
    name: 'kronos_cycles_skipped_total',
    unit: '{cycle}',
    help: 'Cycles without a snapshot, because the previous one took longer than evaluation_interval.',
    labels: {},
  },
  collectDuration: {
    kind: 'histogram',
    name: 'kronos_collect_duration_seconds',
    unit: 's',
    help: 'Time to read one part of the cloud, retries and pages included.',
    labels: {
      part: ['aggregates', 'services', 'hypervisors', 'servers', 'server_groups', 'migrations', 'capacity'],
      outcome: ['read', 'failed'],
    },
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300],
  },
  inventoryAge: {
    kind: 'gauge',
    name: 'kronos_inventory_age_seconds',
    unit: 's',
    help: 'Longest time, over all hosts, since the scorer last read the full server list of a host or compared it with Nova.',
    labels: { aggregate: AGGREGATE },
  },
  inventoryResyncs: {
    kind: 'counter',
    name: 'kronos_inventory_resyncs_total',
    unit: '{read}',
    help: 'Repeated reads of a host, of a server or of everything, because the stored server list differed from Nova; not in mode api.',
    labels: { reason: RESYNC },
  },
  inventoryHosts: {
    kind: 'gauge',
    name: 'kronos_inventory_hosts',
    unit: '{host}',
    help: 'Hosts in the last snapshot, by the source of their server list. In mode notifications, a host with source notifications is trusted.',
    labels: { aggregate: AGGREGATE, source: ['api', 'changes', 'notifications'] },
  },
  notifications: {
    kind: 'counter',
    name: 'kronos_notifications_total',
    unit: '{notification}',
    help: "Messages from the queue of Nova's notifications. stored: on kronos.inventory; ignored: not about a server or host; unversioned: in Nova's old format; rejected: unreadable.",
    labels: { outcome: ['stored', 'ignored', 'unversioned', 'rejected'] },
  },
  notificationsConnected: {
    kind: 'gauge',
    name: 'kronos_notifications_connected',
    unit: '1',
    help: "1 while this scorer receives Nova's notifications from RabbitMQ, 0 while it cannot; only in mode notifications.",
    labels: {},
  },
  snapshots: {
    kind: 'counter',
    name: 'kronos_snapshots_total',
    unit: '{snapshot}',
    help: 'Snapshots, by outcome; duplicate: another scorer wrote it first.',
    labels: { aggregate: AGGREGATE, outcome: ['published', 'duplicate', 'failed'] },
  },
  snapshotBytes: {
    kind: 'gauge',
    name: 'kronos_snapshot_bytes',
    unit: 'By',
    help: 'Size of the last snapshot, before gzip.',
    labels: { aggregate: AGGREGATE },
  },
  imbalance: {
    kind: 'gauge',
    name: 'kronos_imbalance_ratio',
    unit: '1',
    help: 'Imbalance of a policy in the last snapshot: max - min of the host values.',
    labels: { aggregate: AGGREGATE, policy: POLICY },
  },
  threshold: {
    kind: 'gauge',
    name: 'kronos_policy_threshold_ratio',
    unit: '1',
    help: 'Threshold of a policy.',
    labels: { aggregate: AGGREGATE, policy: POLICY },
  },
  hostValue: {
    kind: 'gauges',
    name: 'kronos_host_value_ratio',
    unit: '1',
    help: 'Value of a host in the last snapshot, by policy: what the query of the policy returned. [telemetry] host_metrics = false leaves it out.',
    labels: { aggregate: AGGREGATE, host: { bounded: 'the hosts in scope' }, policy: POLICY },
  },
  combinedImbalance: {
    kind: 'gauge',
    name: 'kronos_combined_imbalance_ratio',
    unit: '1',
    help: 'Weighted sum of the imbalances in the last snapshot.',
    labels: { aggregate: AGGREGATE },
  },
  policyParticipates: {
    kind: 'gauge',
    name: 'kronos_policy_participates',
    unit: '1',
    help: '1 if the policy was used in the last snapshot, 0 if it was skipped.',
    labels: { aggregate: AGGREGATE, policy: POLICY },
  },
  policyMatched: {
    kind: 'gauge',
    name: 'kronos_policy_matched',
    unit: '{thing}',
    help: 'Hosts and servers of the last snapshot for which the queries of a policy have a value.',
    labels: { aggregate: AGGREGATE, policy: POLICY, kind: ['host', 'server'] },
  },
  answers: {
    kind: 'counter',
    name: 'kronos_prometheus_answers_total',
    unit: '{answer}',
    help: 'Answers of Prometheus by health.',
    labels: {
      policy: POLICY,
      query: queryUses,
      health: ['HEALTHY', 'STALE', 'PARTIAL', 'UNREACHABLE', 'ERROR'],
    },
  },
  queryDuration: {
    kind: 'histogram',
    name: 'kronos_prometheus_query_duration_seconds',
    unit: 's',
    help: 'Time of one query, retries included.',
    labels: { query: queryUses },
    buckets: SHORT,
  },
  unmatchedLabels: {
    kind: 'gauge',
    name: 'kronos_unmatched_labels',
    unit: '{label}',
    help: 'Labels in the last answers that match no host or VM, or several VMs.',
    labels: { aggregate: AGGREGATE, kind: ['host', 'vm', 'vm_ambiguous'] },
  },
  observationProblems: {
    kind: 'counter',
    name: 'kronos_observation_problems_total',
    unit: '{problem}',
    help: 'Problems that made an aggregate unplannable for a cycle.',
    labels: { aggregate: AGGREGATE, reason: REASON },
  },
  hosts: {
    kind: 'gauge',
    name: 'kronos_hosts',
    unit: '{host}',
    help: 'Hosts in the last snapshot by the state of their nova-compute.',
    labels: { aggregate: AGGREGATE, state: ['up', 'disabled', 'down', 'unknown'] },
  },
  servers: {
    kind: 'gauge',
    name: 'kronos_servers',
    unit: '{server}',
    help: 'Servers in the last snapshot.',
    labels: { aggregate: AGGREGATE },
  },
  openstackRequests: {
    kind: 'counter',
    name: 'kronos_openstack_requests_total',
    unit: '{request}',
    help: 'Requests to OpenStack; status is the class of the answer, or error when there was none.',
    labels: {
      api: OPENSTACK_APIS,
      method: ['GET', 'POST', 'PUT', 'DELETE'],
      status: ['2xx', '3xx', '4xx', '5xx', 'error'],
    },
  },
  openstackDuration: {
    kind: 'histogram',
    name: 'kronos_openstack_request_duration_seconds',
    unit: 's',
    help: 'Time of one request to OpenStack.',
    labels: { api: OPENSTACK_APIS },
    buckets: SHORT,
  },
  // Planner.
  decisions: {
    kind: 'counter',
    name: 'kronos_decisions_total',
    unit: '{decision}',
    help: 'Decided snapshots by outcome and reason.',
    labels: { aggregate: AGGREGATE, outcome: ['planned', 'quiet', 'gated'], reason: REASON },
  },
  snapshotsNotDecided: {
    kind: 'counter',
    name: 'kronos_snapshots_not_decided_total',
    unit: '{snapshot}',
    help: 'Snapshots that this planner did not decide, by reason (docs/codes.md).',
    labels: { aggregate: AGGREGATE, reason: REASON },
  },
  tasksDispatched: {
    kind: 'counter',
    name: 'kronos_tasks_dispatched_total',
    unit: '{task}',
    help: 'Tasks that this planner put on the work queue.',
    labels: { aggregate: AGGREGATE },
  },
  releases: {
    kind: 'counter',
    name: 'kronos_plans_total',
    unit: '{plan}',
    help: 'Plans by their release at the decision.',
    labels: { aggregate: AGGREGATE, release: ['released', 'proposed', 'dryRun'] },
  },
  decideDuration: {
    kind: 'histogram',
    name: 'kronos_decide_duration_seconds',
    unit: 's',
    help: 'Time of one decision, without folding, appending and the wait for the decisions of other aggregates.',
    labels: { aggregate: AGGREGATE },
    buckets: SHORT,
  },
  predictionError: {
    kind: 'histogram',
    name: 'kronos_prediction_error',
    unit: '1',
    help: 'Difference between the measured and the predicted value of a host, one and ten minutes after the moves that change it.',
    labels: { aggregate: AGGREGATE, policy: POLICY, after: ['1m', '10m'] },
    buckets: [0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5],
  },
  stepsPlanned: {
    kind: 'counter',
    name: 'kronos_steps_planned_total',
    unit: '{step}',
    help: 'Steps of plans.',
    labels: { aggregate: AGGREGATE, phase: phases },
  },
  candidates: {
    kind: 'counter',
    name: 'kronos_candidates_evaluated_total',
    unit: '{candidate}',
    help: 'Candidate moves that planning evaluated.',
    labels: { aggregate: AGGREGATE },
  },
  refusals: {
    kind: 'counter',
    name: 'kronos_refusals_total',
    unit: '{refusal}',
    help: 'Candidates that a constraint refused, by reason.',
    labels: { aggregate: AGGREGATE, reason: REASON },
  },
  stuck: {
    kind: 'gauge',
    name: 'kronos_stuck_servers',
    unit: '{server}',
    help: 'Servers that the last decision had to move but could not.',
    labels: { aggregate: AGGREGATE, phase: phases },
  },
  failoverLacking: {
    kind: 'gauge',
    name: 'kronos_failover_lacking',
    unit: '{failure}',
    help: 'Failures of failover_hosts hosts that would leave VMs without a host, of those that the last decision tested.',
    labels: { aggregate: AGGREGATE },
  },
  courseMoves: {
    kind: 'gauge',
    name: 'kronos_course_moves',
    unit: '{move}',
    help: 'Moves that are left until every policy is at its target, by the last decision that looked for them; 0: none is left, or no course was found.',
    labels: { aggregate: AGGREGATE },
  },
  courseCycles: {
    kind: 'gauge',
    name: 'kronos_course_cycles',
    unit: '{cycle}',
    help: 'Cycles with a plan that these moves take, with the present budget.',
    labels: { aggregate: AGGREGATE },
  },
  courseDuration: {
    kind: 'gauge',
    name: 'kronos_course_seconds',
    unit: 's',
    help: 'About how long these moves take, by the cooldown of the aggregate and the measured pace of moves.',
    labels: { aggregate: AGGREGATE },
  },
  plansWaiting: {
    kind: 'gauge',
    name: 'kronos_plans_waiting',
    unit: '{plan}',
    help: 'Plans that wait for approval.',
    labels: { aggregate: AGGREGATE },
  },
  resizesLate: {
    kind: 'gauge',
    name: 'kronos_resizes_late',
    unit: '{server}',
    help: 'Servers that a move between cells left in VERIFY_RESIZE for an hour longer than its checks take (verify_seconds).',
    labels: { aggregate: AGGREGATE },
  },
  // Executor.
  tasksReceived: {
    kind: 'counter',
    name: 'kronos_tasks_received_total',
    unit: '{delivery}',
    help: 'Deliveries of tasks; redelivered: an executor held the task before.',
    labels: { aggregate: AGGREGATE, delivery: ['first', 'redelivered'] },
  },
  deliveriesLost: {
    kind: 'counter',
    name: 'kronos_task_deliveries_lost_total',
    unit: '{delivery}',
    help: 'Deliveries given up after ack_wait: NATS did not answer, or the executor was held up itself.',
    labels: { aggregate: AGGREGATE },
  },
  tasksHeldBack: {
    kind: 'counter',
    name: 'kronos_tasks_held_back_total',
    unit: '{task}',
    help: 'Delayed starts, by reason: not due, a concurrency limit, a dependency, paused.',
    labels: { aggregate: AGGREGATE, reason: REASON },
  },
  migrationsStarted: {
    kind: 'counter',
    name: 'kronos_migrations_started_total',
    unit: '{attempt}',
    help: 'Attempts at a migration that got a slot.',
    labels: { aggregate: AGGREGATE, phase: phases, forced: ['true', 'false'] },
  },
  migrationsEnded: {
    kind: 'counter',
    name: 'kronos_migrations_ended_total',
    unit: '{attempt}',
    help: 'Ends of attempts; error_type is none unless it failed, phase unknown where a message was no task.',
    labels: {
      aggregate: AGGREGATE,
      phase: [...phases, 'unknown'],
      outcome: ['completed', 'failed', 'retried', 'skipped'],
      error_type: ['none', ...errorTypes],
    },
  },
  migrationsWarned: {
    kind: 'counter',
    name: 'kronos_migrations_warned_total',
    unit: '{attempt}',
    help: 'Ends of attempts that are neither a plain success nor a failure. damaged: the server is in ERROR. warned: the move completed with a warning.',
    labels: { aggregate: AGGREGATE, phase: phases, end: ['warned', 'damaged'] },
  },
  migrationsInFlight: {
    kind: 'gauge',
    name: 'kronos_migrations_in_flight',
    unit: '{attempt}',
    help: 'Slots taken, over all replicas, according to the log.',
    labels: { aggregate: AGGREGATE },
  },
  migrationDuration: {
    kind: 'histogram',
    name: 'kronos_migration_duration_seconds',
    unit: 's',
    help: 'Time of a migration from the request to its end.',
    labels: { aggregate: AGGREGATE, outcome: ['completed', 'failed'] },
    buckets: LONG,
  },
  migrationQueued: {
    kind: 'histogram',
    name: 'kronos_migration_queued_seconds',
    unit: 's',
    help: 'Time a migration waited in Nova before it was running.',
    labels: { aggregate: AGGREGATE },
    buckets: LONG,
  },
  migrationBytes: {
    kind: 'counter',
    name: 'kronos_migration_memory_bytes_total',
    unit: 'By',
    help: 'Memory that migrations have copied.',
    labels: { aggregate: AGGREGATE },
  },
  migrationRemaining: {
    kind: 'gauge',
    name: 'kronos_migration_memory_remaining_bytes',
    unit: 'By',
    help: 'Memory that the migrations followed by this process still have to copy.',
    labels: { aggregate: AGGREGATE },
  },
  abortsRefused: {
    kind: 'counter',
    name: 'kronos_migration_aborts_refused_total',
    unit: '{abort}',
    help: 'Aborts that Nova refused; the executor continues to follow the migration.',
    labels: { aggregate: AGGREGATE },
  },
  // Ledger.
  aggregateCooldown: {
    kind: 'gauge',
    name: 'kronos_aggregate_cooldown_seconds',
    unit: 's',
    help: 'Time until the aggregate may be planned again; 0 when it may.',
    labels: { aggregate: AGGREGATE },
  },
  paused: {
    kind: 'gauge',
    name: 'kronos_paused',
    unit: '1',
    help: '1 while the aggregate is paused.',
    labels: { aggregate: AGGREGATE },
  },
  quarantined: {
    kind: 'gauge',
    name: 'kronos_quarantined_servers',
    unit: '{server}',
    help: 'Servers in quarantine.',
    labels: { aggregate: AGGREGATE },
  },
  damagedServers: {
    kind: 'gauge',
    name: 'kronos_damaged_servers',
    unit: '{server}',
    help: 'Servers that were in ERROR at the end of their move. A server counts until its quarantine is released or it is moved again.',
    labels: { aggregate: AGGREGATE },
  },
  serviceInstances: {
    kind: 'gauge',
    name: 'kronos_service_instances',
    unit: '{process}',
    help: 'Instances of a service whose heartbeats arrive in NATS.',
    labels: { service: ['scorer', 'planner', 'executor', 'ledger'] },
  },
  brokenHosts: {
    kind: 'gauge',
    name: 'kronos_broken_hosts',
    unit: '{host}',
    help: 'Hosts that the host breaker excludes as destinations.',
    labels: { aggregate: AGGREGATE },
  },
  checkpointSequence: {
    kind: 'gauge',
    name: 'kronos_checkpoint_sequence',
    unit: '1',
    help: 'Log sequence that the last checkpoint covers.',
    labels: { aggregate: AGGREGATE },
  },
  checkpointVerified: {
    kind: 'gauge',
    name: 'kronos_checkpoint_verified_sequence',
    unit: '1',
    help: 'Log sequence up to which the state is verified against the log. A service that starts from a checkpoint folds the log again in the background.',
    labels: {},
  },
  checkpointsSkipped: {
    kind: 'counter',
    name: 'kronos_checkpoints_skipped_total',
    unit: '{checkpoint}',
    help: 'Checkpoints that were skipped at the start because they could not be trusted; the log message names the reason.',
    labels: {},
  },
  archiveSequence: {
    kind: 'gauge',
    name: 'kronos_archive_sequence',
    unit: '1',
    help: 'Log sequence that the archive covers.',
    labels: {},
  },
  sinkAttempts: {
    kind: 'counter',
    name: 'kronos_notify_attempts_total',
    unit: '{attempt}',
    help: 'Attempts to send a notification, by outcome: delivered; failed, which is tried again; dropped, as the receiver refuses it for good.',
    labels: { sink: { bounded: 'the sinks of the configuration' }, outcome: ['delivered', 'failed', 'dropped'] },
  },
  sinkDead: {
    kind: 'gauge',
    name: 'kronos_notify_sink_dead',
    unit: '1',
    help: '1 while a sink of notifications has taken nothing for minutes, else 0.',
    labels: { sink: { bounded: 'the sinks of the configuration' } },
  },
  httpRequests: {
    kind: 'counter',
    name: 'kronos_http_requests_total',
    unit: '{request}',
    help: "Requests to the service's own HTTP server.",
    labels: { route: { bounded: 'the routes of the service' }, status: ['2xx', '3xx', '4xx', '5xx'] },
  },
} as const satisfies Record<string, MetricSpec>;

export type MetricName = keyof typeof metricSpecs;
