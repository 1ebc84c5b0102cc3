import { MAX_COOLDOWN_SECONDS, MAX_QUARANTINE_SECONDS } from '@kronos/contracts/limits';
import { ALL, UNASSIGNED } from '@kronos/contracts/names';
import { parseBlackout, parseWindow } from '@kronos/rules';
import { parseTimeZone } from '../kinds.ts';
import {
  bool,
  choice,
  decimal,
  EVERYONE,
  integer,
  list,
  listOf,
  make,
  NOVA,
  PLANNING,
  path,
  SCORER,
  SERVICES,
  seconds,
} from '../option.ts';

/** The options of the section `[engine]`. */
export const engine = {
  aggregates: list([], {
    by: EVERYONE,
    help: `Nova host aggregates that Kronos balances, by name. At least one of aggregates and include_unassigned_hosts must be set. ${UNASSIGNED} and ${ALL} are reserved names.`,
  }),
  include_unassigned_hosts: bool(false, {
    by: EVERYONE,
    help: `Also balance the hypervisors that belong to no aggregate (the unassigned pool); events and commands name it ${UNASSIGNED}.`,
  }),
  policies_file: path('/etc/kronos/policies.yaml', { by: SCORER, help: 'The policies.' }),
  evaluation_interval: seconds(60, {
    min: 1,
    max: 86400,
    by: ['scorer', 'planner'],
    help: 'Interval between two cycles of an aggregate.',
  }),
  dry_run: bool(true, {
    by: PLANNING,
    help: 'Compute and record plans, but release none. A new installation moves nothing until you set this to false.',
  }),
  approval: choice(['auto', 'manual'], 'auto', {
    by: PLANNING,
    help: 'auto: Kronos releases a plan when it makes it. manual: a plan waits for kronos approve.',
  }),
  approval_ttl: seconds(900, { min: 1, by: PLANNING, help: 'How long a plan waits for approval before it expires.' }),
  plan_ttl: seconds(3600, {
    min: 1,
    by: PLANNING,
    help: 'How long after its release a task may start; later it is cancelled.',
  }),
  balance: bool(true, {
    by: ['scorer', 'planner'],
    help: 'false: rules-only mode without policies and Prometheus. Kronos only evacuates and repairs affinity, and chooses destinations by free capacity.',
  }),
  planner: choice(['search', 'greedy'], 'search', {
    by: PLANNING,
    help: 'Algorithm for spread plans. search optimises the plan as a whole (plateaus, swaps, chains); greedy takes the best single move repeatedly.',
  }),
  search_work_limit: integer(20_000_000, {
    min: 1,
    by: PLANNING,
    help: 'Maximum number of candidates that planner=search evaluates for one plan. It counts work, not time, so that a replay gives the same plan. After a decision that took longer than evaluation_interval the planner works with less for a while, also after a restart; the decision on the log names its limit.',
  }),
  search_threads: integer(0, {
    min: 0,
    max: 16,
    by: PLANNING,
    help: 'Threads that planner=search uses for one plan; 0: as many as the machine has cores, at most 4. It changes how long a plan takes, never the plan. 1: the planner starts no threads, and answers nothing while it decides.',
  }),
  min_gain: decimal(0.001, {
    min: 0,
    max: 1,
    by: PLANNING,
    help: 'A spread move must lower the combined imbalance by at least this much.',
  }),
  target_ratio: decimal(0.85, {
    min: 0.01,
    max: 1,
    by: PLANNING,
    help: 'planner=search starts a plan when a policy is above its threshold and aims at this ratio of the threshold, so that noise does not start the next plan. A policy can set its own target.',
  }),
  move_overhead_gib: decimal(8, {
    min: 0,
    max: 1_000_000,
    by: PLANNING,
    help: 'Fixed cost of a move in GiB, added to the memory and the local disk that it copies. planner=search takes the plan of the lowest cost that reaches every target.',
  }),
  move_rate_mib: decimal(100, {
    min: 0.001,
    max: 1_000_000,
    by: PLANNING,
    help: 'MiB per second that a live migration copies, until at least 3 moves of the aggregate have been measured. The memory that a VM writes (move_cost_query of a policy) is weighed against it.',
  }),
  min_instance_age: seconds(0, {
    min: 0,
    by: PLANNING,
    help: 'Minimum age of a VM that may be moved; evacuation ignores it. A VM of unknown age counts as younger.',
  }),
  soft_rules: choice(['veto', 'penalty'], 'veto', {
    by: PLANNING,
    help: 'veto: soft affinity and soft anti-affinity are as strict as the hard rules. penalty: planner=search and the evacuation may break a soft rule, which counts as soft_penalty of imbalance and is reported.',
  }),
  soft_penalty: decimal(0.05, {
    min: 0,
    max: 1,
    by: PLANNING,
    help: 'What each VM that breaks a soft rule adds to the combined imbalance with soft_rules=penalty.',
  }),
  forecast: bool(false, {
    by: ['scorer', ...PLANNING],
    help: 'Read from Prometheus the values of the VMs at this time on former days. planner=search and planner=greedy make no plan if the imbalance passes by itself and moves would not shorten it, or if the plan would be undone within forecast_horizon.',
  }),
  forecast_horizon: seconds(3600, {
    min: 600,
    max: 21_600,
    by: ['scorer', ...PLANNING],
    help: 'How far ahead the forecast looks.',
  }),
  forecast_days: integer(14, {
    min: 3,
    max: 14,
    by: ['scorer'],
    help: 'How many former days the forecast reads. Prometheus must keep them: its default is 15 days.',
  }),
  cooldown: seconds(600, {
    min: 0,
    max: MAX_COOLDOWN_SECONDS,
    by: PLANNING,
    help: 'How long Kronos plans no further move of an aggregate after it released a plan.',
  }),
  instance_cooldown: seconds(1800, {
    min: 0,
    max: MAX_COOLDOWN_SECONDS,
    by: PLANNING,
    help: 'How long Kronos does not move a VM again after it released a move of the VM.',
  }),
  adaptive_cooldown_factor: decimal(1, {
    min: 1,
    max: 100,
    by: PLANNING,
    help: 'Factor by which each recent release of a move of the VM multiplies instance_cooldown, whether or not the move then started.',
  }),
  instance_quarantine_seconds: seconds(3600, {
    min: -1,
    max: MAX_QUARANTINE_SECONDS,
    by: PLANNING,
    help: 'How long a VM is in quarantine after its move failed for good. -1: until an operator releases it.',
  }),
  settle_seconds: seconds(120, {
    min: 0,
    by: PLANNING,
    help: 'Kronos plans on a snapshot only if it was taken at least this long after the last move of the aggregate ended, so that the metrics show the move. Use at least the time range of the queries.',
  }),
  evacuate_disabled_hosts: bool(false, {
    by: PLANNING,
    help: 'Move VMs off hosts whose nova-compute is disabled and up.',
  }),
  windows: listOf('a comma list of windows', parseWindow, {
    by: PLANNING,
    help: 'When moves may start, in the local time of timezone, such as Mon-Fri 22:00-06:00, Sat-Sun 00:00-24:00. Empty: at all times. Outside the windows Kronos makes and records plans, but does not release them. A released move that has not started when the window closes is cancelled; a running migration continues. A window that ends on the next day belongs to the day of its start.',
  }),
  blackouts: listOf('a comma list of dates and ranges', parseBlackout, {
    by: PLANNING,
    help: 'Dates and ranges in which no move starts, even inside a window, in the local time of timezone, such as 2026-12-24/2027-01-02 (the last day included) or 2026-12-24T18:00/2026-12-26T06:00.',
  }),
  timezone: make('text', 'UTC', {
    takes: 'a time zone of the IANA database',
    parse: parseTimeZone,
    by: PLANNING,
    help: 'The time zone of windows and blackouts, such as Europe/Berlin. A local time that does not exist in spring means the moment of the change. If a local time exists twice in autumn, the first one counts; at the end of a blackout, the second one.',
  }),
  evacuation_ignores_windows: bool(false, {
    by: PLANNING,
    help: 'Release evacuation steps at any time, also in blackouts and for servers with their own windows.',
  }),
  evacuation_thresholds: choice(['prefer', 'require'], 'prefer', {
    by: PLANNING,
    help: 'prefer: where no destination keeps every policy within its threshold, a step of an evacuation or a repair exceeds it as little as possible, with a warning. require: such a step is not made.',
  }),
  evacuation_ignores_cooldown: bool(false, {
    by: PLANNING,
    help: "Evacuation steps ignore the aggregate's cooldown. All other conditions apply.",
  }),
  enforce_hard_affinity: bool(false, {
    by: PLANNING,
    help: 'Repair violated server groups with the policies affinity and anti-affinity.',
  }),
  enforce_soft_affinity: bool(false, {
    by: PLANNING,
    help: 'Repair violated server groups with the policies soft-affinity and soft-anti-affinity.',
  }),
  restrict_to_az: bool(false, { by: PLANNING, help: 'Keep each VM in its availability zone.' }),
  move_unknown_topology: bool(false, {
    by: PLANNING,
    help: 'Move VMs with pinned CPUs, NUMA cells or huge pages also where the NUMA cells of the hosts are unknown. Nova refuses what does not fit.',
  }),
  failover_hosts: integer(0, {
    min: 0,
    by: PLANNING,
    help: 'The VMs of this many hosts that fail must have room on the others: no plan takes this room, and plans restore it. Exact for 1; for more, each host is tested together with the largest others.',
  }),
  foreign_moves: choice(['wait', 'ignore'], 'wait', {
    by: ['scorer', ...PLANNING],
    help: 'wait: a VM that others moved after Kronos, so that its move is undone or repeated, stays there for foreign_wait; nothing is balanced while there are several such VMs, and in cycles in which Nova does not list its completed migrations. ignore: Kronos goes on. Evacuations never wait.',
  }),
  foreign_wait: seconds(3600, {
    min: 0,
    max: 86_400,
    by: PLANNING,
    help: 'How long a migration of others that undoes or repeats a move of Kronos counts.',
  }),
  require_all_policies: bool(false, {
    by: PLANNING,
    help: 'Plan nothing in a cycle in which a policy is skipped because its data are missing.',
  }),
  pack_headroom_hosts: integer(0, {
    min: 0,
    by: PLANNING,
    help: 'Pack mode: the other hosts in use must keep room for the load of this many hosts, below capacity_threshold. Exact for 1; for more, each host is tested together with the largest others.',
  }),
  pack_reach_cycles: integer(3, {
    min: 1,
    by: PLANNING,
    help: 'Pack mode: Kronos starts to empty a host only if all its VMs can leave within this many cycles.',
  }),
  allow_parking: bool(false, {
    by: PLANNING,
    help: 'Allow a plan to move a VM to an intermediate host to make room; such a move counts as two.',
  }),
  alternates: integer(2, {
    min: 0,
    max: 10,
    by: PLANNING,
    help: 'Number of alternates of each step: further legal destinations to try if the first one fails.',
  }),
  stagger_seconds: seconds(0, {
    min: 0,
    by: PLANNING,
    help: 'Time between the earliest starts of two consecutive steps. 0: only the concurrency limits of [executor] delay steps.',
  }),
  max_clock_skew: seconds(5, {
    min: 0.1,
    by: SERVICES,
    help: 'Maximum difference between a clock and the clock of the NATS server. If the time of an event differs by more, readers warn, are not ready and do not plan such a snapshot. A service whose own clock differs by more decides and starts nothing.',
  }),
  opt_out: list(['kronos:exclude'], {
    by: NOVA,
    help: "Kronos never moves a server that one of these entries names. `project:ID`, `flavor:NAME`, `name:PATTERN` (`*`: any text), `image:KEY` and `image:KEY=VALUE` (a property of its image) name servers of the operator's choice. Every other entry is a metadata key (with any value but false) or a tag, which tenants can set: leave such entries out to switch the opt-outs of tenants off. Other tools' tags work too, such as `lcm.mirantis.com:no-drb`.",
  }),
} as const;
