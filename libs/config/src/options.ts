import {
  MAX_BREAKER_SECONDS,
  MAX_COOLDOWN_SECONDS,
  MAX_PROPOSAL_SECONDS,
  MAX_QUARANTINE_SECONDS,
  MAX_RETRY_WAIT_SECONDS,
} from '@kronos/contracts/limits';
import { ALL, UNASSIGNED } from '@kronos/contracts/names';
import { parseBlackout, parseWindow } from '@kronos/rules';
import {
  type CellAggregate,
  type CellPattern,
  type Parsed,
  parseBool,
  parseBytes,
  parseCellMap,
  parseCells,
  parseChoice,
  parseFloat10,
  parseInboxPrefix,
  parseInt10,
  parseList,
  parsePath,
  parseSeconds,
  parseSecret,
  parseText,
  parseTimeZone,
  parseUrl,
  parseVerify,
  type Range,
  rangeText,
} from './kinds.ts';
import type { Secret } from './secret.ts';
import { parseSigningSecret, parseSinkUrl } from './webhook.ts';

/** The readers of options. `cli` is every command of `kronos` that is neither a service nor `provision`. */
export const readers = ['scorer', 'planner', 'executor', 'ledger', 'provision', 'cli'] as const;
export type Reader = (typeof readers)[number];

const kinds = [
  'boolean',
  'integer',
  'number',
  'seconds',
  'bytes',
  'text',
  'list',
  'choice',
  'path',
  'url',
  'secret',
  'cells',
] as const;
type Kind = (typeof kinds)[number];

/** One option: everything that parsing, the sample, the documentation and the type of the configuration need. */
export interface Option<T> {
  readonly kind: Kind;
  /** Null where the option is absent by default. */
  readonly default: T;
  readonly parse: (raw: string) => Parsed<T>;
  /** Its valid values, in words: `a number from 0 to 1`, `auto or manual`. */
  readonly takes: string;
  readonly readBy: readonly Reader[];
  readonly help: string;
  /** For the path of a secret's file: the secret option that the file fills. */
  readonly fills: string | null;
}

interface About {
  readonly by: readonly Reader[];
  readonly help: string;
}

const make = <T>(
  kind: Kind,
  fallback: T,
  takes: string,
  parse: (raw: string) => Parsed<T>,
  about: About,
  fills: string | null = null,
): Option<T> => ({ kind, default: fallback, parse, takes, readBy: about.by, help: about.help, fills });

const bool = (fallback: boolean, about: About): Option<boolean> =>
  make('boolean', fallback, 'true or false', parseBool, about);

const int = (fallback: number, about: About & Range): Option<number> =>
  make('integer', fallback, rangeText(about, 'a whole number'), (raw) => parseInt10(raw, about), about);

const float = (fallback: number, about: About & Range): Option<number> =>
  make('number', fallback, rangeText(about, 'a number'), (raw) => parseFloat10(raw, about), about);

const seconds = (fallback: number, about: About & Range): Option<number> =>
  make('seconds', fallback, rangeText(about, 'seconds'), (raw) => parseSeconds(raw, about), about);

const bytes = (fallback: number, about: About & Range): Option<number> =>
  make('bytes', fallback, 'bytes, e.g. 1048576, 512MiB or 10GiB', (raw) => parseBytes(raw, about), about);

const text = (fallback: string, about: About): Option<string> => make('text', fallback, 'text', parseText, about);

const optionalText = (about: About): Option<string | null> => make('text', null, 'text', parseText, about);

const list = (fallback: readonly string[], about: About): Option<readonly string[]> =>
  make('list', fallback, 'a comma list', parseList, about);

/** A comma list whose items a rule reads. They stay text: the rule reads them again where it decides. */
const listOf = (takes: string, read: (item: string) => Parsed<unknown>, about: About): Option<readonly string[]> =>
  make(
    'list',
    [],
    takes,
    (raw) => {
      const items = parseList(raw);
      const wrong = items.ok ? items.value.map(read).find((item) => !item.ok) : undefined;
      return wrong !== undefined && !wrong.ok ? wrong : items;
    },
    about,
  );

const choice = <const V extends string>(values: readonly V[], fallback: NoInfer<V>, about: About): Option<V> =>
  make('choice', fallback, values.join(' or '), (raw) => parseChoice(raw, values), about);

const path = (fallback: string, about: About): Option<string> => make('path', fallback, 'a path', parsePath, about);

const optionalPath = (about: About): Option<string | null> => make('path', null, 'a path', parsePath, about);

const optionalUrl = (schemes: readonly string[], about: About): Option<string | null> =>
  make('url', null, `a URL (${schemes.join(', ')})`, (raw) => parseUrl(raw, schemes), about);

const urls = (fallback: readonly string[], schemes: readonly string[], about: About): Option<readonly string[]> =>
  make(
    'list',
    fallback,
    `a comma list of URLs (${schemes.join(', ')})`,
    (raw) => {
      const items = parseList(raw);
      if (!items.ok) return items;
      if (items.value.length === 0) return { ok: false, problem: 'is empty', remedy: 'Name at least one server.' };
      for (const item of items.value) {
        const url = parseUrl(item, schemes);
        if (!url.ok) return url;
      }
      return items;
    },
    about,
  );

const secret = (about: About): Option<Secret | null> => make('secret', null, 'a secret', parseSecret, about);

const secretFile = (fills: string, about: Omit<About, 'help'>): Option<string | null> =>
  make(
    'path',
    null,
    'a path',
    parsePath,
    {
      ...about,
      help: `File that holds ${fills}, to keep the secret out of kronos.conf. White space around it is ignored.`,
    },
    fills,
  );

const SERVICES = ['scorer', 'planner', 'executor', 'ledger'] as const;
const EVERYONE = readers;
const PLANNING = ['planner'] as const;
const NOVA = ['scorer', 'executor'] as const;
const SCORER = ['scorer'] as const;
const EXECUTOR = ['executor'] as const;
const LEDGER = ['ledger'] as const;
const CELLS = ['scorer', 'executor', 'cli'] as const;
const HTTP_URL = ['http', 'https'] as const;

/**
 * Every option of kronos.conf: the one table from which the parser, the types, `kronos config sample` and
 * docs/configuration.md come. Durations are seconds, sizes bytes.
 */
export const options = {
  engine: {
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
    search_work_limit: int(20_000_000, {
      min: 1,
      by: PLANNING,
      help: 'Maximum number of candidates that planner=search evaluates for one plan. This is its only limit. It counts work, not time, so that a replay gives the same plan.',
    }),
    search_threads: int(0, {
      min: 0,
      max: 16,
      by: PLANNING,
      help: 'Threads that planner=search uses for one plan; 0: as many as the machine has cores, at most 4. It changes how long a plan takes, never the plan. 1: the planner starts no threads.',
    }),
    min_gain: float(0.001, {
      min: 0,
      max: 1,
      by: PLANNING,
      help: 'A spread move must lower the combined imbalance by at least this much.',
    }),
    target_ratio: float(0.85, {
      min: 0.01,
      max: 1,
      by: PLANNING,
      help: 'planner=search starts a plan when a policy is above its threshold and aims at this ratio of the threshold, so that noise does not start the next plan. A policy can set its own target.',
    }),
    move_overhead_gib: float(8, {
      min: 0,
      max: 1_000_000,
      by: PLANNING,
      help: 'Fixed cost of a move in GiB, added to the memory and the local disk that it copies. planner=search takes the plan of the lowest cost that reaches every target.',
    }),
    move_rate_mib: float(100, {
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
    soft_penalty: float(0.05, {
      min: 0,
      max: 1,
      by: PLANNING,
      help: 'What each VM that breaks a soft rule adds to the combined imbalance with soft_rules=penalty.',
    }),
    forecast: bool(false, {
      by: ['scorer', ...PLANNING],
      help: 'Ask Prometheus what the VMs did at this time on former days. planner=search and planner=greedy make no plan where the imbalance passes by itself and moves would not shorten it, or where the plan would be undone within forecast_horizon.',
    }),
    forecast_horizon: seconds(3600, {
      min: 600,
      max: 21_600,
      by: ['scorer', ...PLANNING],
      help: 'How far ahead former days are asked.',
    }),
    forecast_days: int(14, {
      min: 3,
      max: 14,
      by: ['scorer'],
      help: 'How many former days are asked. Prometheus must keep them: its default is 15 days.',
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
    adaptive_cooldown_factor: float(1, {
      min: 1,
      max: 100,
      by: PLANNING,
      help: 'Factor by which each recent move of the VM multiplies instance_cooldown.',
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
    timezone: make('text', 'UTC', 'a time zone of the IANA database', parseTimeZone, {
      by: PLANNING,
      help: 'The time zone of windows and blackouts, such as Europe/Berlin. A local time that does not exist in spring means the moment of the change. Of a local time that exists twice in autumn, the first counts; at the end of a blackout, the second.',
    }),
    evacuation_ignores_windows: bool(false, {
      by: PLANNING,
      help: 'Release evacuation steps at any time, also in blackouts and for servers with their own windows.',
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
    require_all_policies: bool(false, {
      by: PLANNING,
      help: 'Plan nothing in a cycle in which a policy is skipped because its data are missing.',
    }),
    pack_headroom_hosts: int(0, {
      min: 0,
      by: PLANNING,
      help: 'Pack mode: the other hosts must keep room for the load of this many of the largest hosts.',
    }),
    pack_reach_cycles: int(3, {
      min: 1,
      by: PLANNING,
      help: 'Pack mode: Kronos starts to empty a host only if all its VMs can leave within this many cycles.',
    }),
    allow_parking: bool(false, {
      by: PLANNING,
      help: 'Allow a plan to move a VM to an intermediate host to make room; such a move counts as two.',
    }),
    alternates: int(2, {
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
      help: 'Kronos never moves a server whose metadata has one of these keys (with any value but false), or that has one of them as a tag.',
    }),
  },
  executor: {
    max_concurrent_migrations: int(4, {
      min: 1,
      by: EXECUTOR,
      help: 'Concurrency limit: moves in flight per aggregate, over all replicas of the executor.',
    }),
    max_outbound_per_host: int(1, {
      min: 1,
      by: EXECUTOR,
      help: "Concurrency limit: moves in flight off one host. Nova's max_concurrent_live_migrations is 1 by default: further ones wait in Nova's queue.",
    }),
    max_inbound_per_host: int(2, {
      min: 1,
      by: EXECUTOR,
      help: 'Concurrency limit: moves in flight onto one host. Nova has no such limit.',
    }),
    max_concurrent_per_group: int(1, {
      min: 1,
      by: EXECUTOR,
      help: 'Concurrency limit: moves in flight of members of one server group.',
    }),
    max_retries: int(3, { min: 0, max: 20, by: EXECUTOR, help: 'Number of attempts at a move after the first one.' }),
    retry_backoff: seconds(30, {
      min: 0,
      max: MAX_RETRY_WAIT_SECONDS,
      by: EXECUTOR,
      help: 'Backoff before the second attempt on the same destination; it doubles for each further one. The executor tries the next alternate at once.',
    }),
    retry_backoff_max: seconds(600, {
      min: 0,
      max: MAX_RETRY_WAIT_SECONDS,
      by: EXECUTOR,
      help: 'Maximum backoff between two attempts.',
    }),
    poll_interval: seconds(5, {
      min: 0.05,
      max: 300,
      by: EXECUTOR,
      help: 'Interval at which the executor asks Nova about a running migration.',
    }),
    queue_timeout: seconds(1800, {
      min: 1,
      by: EXECUTOR,
      help: 'How long a migration may wait in Nova until its status is running. The other deadlines count from that moment.',
    }),
    deadline_per_gib: seconds(60, {
      min: 0,
      by: EXECUTOR,
      help: "Deadline of a running migration per GiB of the VM's RAM and local disk. A slower migration that makes progress, or one between hosts whose former moves were slower, gets more time, up to hard_timeout. Nova's default is 800.",
    }),
    deadline_min: seconds(600, { min: 1, by: EXECUTOR, help: 'Shortest deadline of a running migration.' }),
    no_progress_timeout: seconds(600, {
      min: 1,
      by: EXECUTOR,
      help: 'A running migration whose remaining bytes have reached no new minimum for this long counts as past its deadline.',
    }),
    on_deadline: choice(['abort', 'wait'], 'abort', {
      by: EXECUTOR,
      help: 'Action at the deadline. abort: abort the migration. wait: wait until hard_timeout, then abort it.',
    }),
    hard_timeout: seconds(43200, {
      min: 1,
      by: EXECUTOR,
      help: 'Longest time of a running migration that is slow or has on_deadline=wait; then the executor aborts it. A longer deadline by size replaces it.',
    }),
    breaker_failures: int(3, {
      min: 1,
      by: PLANNING,
      help: 'Host breaker: this many failed moves onto one host within breaker_window exclude it as a destination.',
    }),
    breaker_window: seconds(1800, {
      min: 1,
      max: MAX_BREAKER_SECONDS,
      by: PLANNING,
      help: 'Host breaker: the period in which failures count together.',
    }),
    breaker_duration: seconds(1800, {
      min: 1,
      max: MAX_BREAKER_SECONDS,
      by: PLANNING,
      help: 'Host breaker: how long the host is excluded.',
    }),
    dry_run: bool(false, {
      by: EXECUTOR,
      help: 'Check every task against the cloud, but never ask Nova to migrate. The result is migration.skipped.',
    }),
    force: bool(false, {
      by: EXECUTOR,
      help: "Bypass Nova's scheduler. Only for clouds below compute microversion 2.68. Each forced move is logged and recorded as forced.",
    }),
  },
  cells: {
    aggregates: make<readonly CellAggregate[]>('cells', [], 'a comma list of CELL:AGGREGATE', parseCellMap, {
      by: CELLS,
      help: 'Aggregates between which kronos cells plan may move servers, and the cell of their hosts, e.g. cell1:old, cell2:new. Each of them is in the scope of [engine]. Empty: moves between cells are off.',
    }),
    volumes_shared: bool(false, {
      by: SCORER,
      help: 'Every cell reaches the same volumes. false: a server with a volume does not leave its cell.',
    }),
    networks_shared: bool(false, {
      by: SCORER,
      help: 'Every cell reaches the same networks. false: a server with a port does not leave its cell.',
    }),
    max_image_gib: int(0, {
      min: 0,
      by: SCORER,
      help: 'Largest image in GiB that the image store takes. The local disk of a server that leaves its cell becomes an image; a server with a larger one stays. 0: no limit.',
    }),
    cross_cell_weight: float(1, {
      min: 0,
      max: 1000,
      by: SCORER,
      help: "How much a destination in the server's own cell is preferred. 1 outweighs any difference in free memory; 0: no preference.",
    }),
    downtime_fixed: seconds(60, {
      min: 0,
      by: SCORER,
      help: 'Expected downtime of a move, without the copy of local disks. Plans show it; nothing waits for it.',
    }),
    downtime_per_gib: seconds(20, {
      min: 0,
      by: SCORER,
      help: 'Expected additional downtime per GiB of local disk that leaves its cell.',
    }),
    approval_ttl: seconds(3600, {
      min: 1,
      max: MAX_PROPOSAL_SECONDS,
      by: SCORER,
      help: 'How long a plan between cells waits for approval before it expires.',
    }),
    plan_ttl: seconds(86400, {
      min: 1,
      max: MAX_PROPOSAL_SECONDS,
      by: SCORER,
      help: 'How long after the approval of its plan a move between cells may start; later it is cancelled.',
    }),
    max_concurrent_resizes: int(2, {
      min: 1,
      by: EXECUTOR,
      help: 'Concurrency limit: moves between cells in flight per aggregate, over all replicas of the executor. A move in VERIFY_RESIZE counts.',
    }),
    max_outbound_per_host: int(1, {
      min: 1,
      by: EXECUTOR,
      help: 'Concurrency limit: moves between cells in flight off one host.',
    }),
    max_inbound_per_host: int(1, {
      min: 1,
      by: EXECUTOR,
      help: 'Concurrency limit: moves between cells in flight onto one host.',
    }),
    verify: make('text', 'none', 'none, tcp:PORT or command:COMMAND', parseVerify, {
      by: EXECUTOR,
      help: 'Additional check of a moved server in VERIFY_RESIZE. tcp:PORT: one of its addresses accepts a connection. command:COMMAND: the command ends with status 0; $KRONOS_SERVER, $KRONOS_HOST and $KRONOS_ADDRESSES describe the server. A server that was stopped is not checked in this way.',
    }),
    verify_seconds: seconds(60, {
      min: 0,
      max: 86400,
      by: SCORER,
      help: 'How long the checks of a moved server must succeed before confirm=auto confirms the move. Recorded with each plan, as confirm is.',
    }),
    verify_timeout: seconds(600, {
      min: 1,
      max: 86400,
      by: EXECUTOR,
      help: 'How long after VERIFY_RESIZE a check may fail before the executor reverts the move.',
    }),
    confirm: choice(['auto', 'manual'], 'auto', {
      by: SCORER,
      help: 'auto: the executor confirms a move after verify_seconds of success. manual: a move waits for kronos cells confirm or revert. Both accept it when somebody else confirms or reverts.',
    }),
  },
  inventory: {
    mode: choice(['api', 'changes', 'notifications'], 'api', {
      by: SCORER,
      help: "How the scorer reads the servers. api: all servers in every cycle. changes: all servers once, then only changed ones (changes-since), compared with Nova every sync_interval. notifications: all servers once, then those that Nova's versioned notifications name, compared in the same way. The scorer reads the servers of a host in every cycle if its nova-compute sends none.",
    }),
    sync_interval: seconds(300, {
      min: 1,
      by: SCORER,
      help: 'How often the scorer compares the servers of each host with the ids that Nova lists, unless mode=api. It reads a host that differs again.',
    }),
    transport_url: secret({
      by: SCORER,
      help: "RabbitMQ of Nova's notifications, for mode=notifications: transport_url of [oslo_messaging_notifications] (or [DEFAULT]) in nova.conf, rabbit://USER:PASSWORD@HOST:PORT,.../VHOST, with ?ssl=1 for TLS.",
    }),
    transport_url_file: secretFile('transport_url', { by: SCORER }),
    transport_ca: optionalPath({ by: SCORER, help: 'CA certificates (PEM) to verify RabbitMQ with.' }),
    transport_cert: optionalPath({ by: SCORER, help: 'Client certificate (PEM) for RabbitMQ.' }),
    transport_key: optionalPath({ by: SCORER, help: 'Key of the client certificate (PEM) for RabbitMQ.' }),
    notification_exchange: text('nova', {
      by: SCORER,
      help: "Exchange of Nova's notifications: control_exchange in nova.conf. Kronos never declares it.",
    }),
    notification_topic: text('versioned_notifications', {
      by: SCORER,
      help: 'Topic of the versioned notifications: versioned_notifications_topics of [notifications] in nova.conf.',
    }),
    queue: text('kronos', {
      by: SCORER,
      help: 'Queue that Kronos declares and binds to the exchange. All scorers of an installation share it. No other program may consume from it.',
    }),
    queue_type: choice(['quorum', 'classic'], 'quorum', {
      by: SCORER,
      help: 'Type of the queue. A queue that exists with another type must be deleted first.',
    }),
  },
  nova: {
    cloud: optionalText({
      by: NOVA,
      help: 'Name of a cloud in clouds.yaml. It replaces all authentication options below.',
    }),
    clouds_file: optionalPath({
      by: NOVA,
      help: 'The clouds.yaml for cloud. Default: ./clouds.yaml, ~/.config/openstack/clouds.yaml, /etc/openstack/clouds.yaml: the first that exists.',
    }),
    auth_type: choice(['password', 'v3applicationcredential', 'v3token'], 'password', {
      by: NOVA,
      help: 'Keystone authentication plugin.',
    }),
    auth_url: optionalUrl(HTTP_URL, { by: NOVA, help: "Keystone's URL, e.g. https://keystone.example.org:5000/v3." }),
    username: optionalText({ by: NOVA, help: 'User, for auth_type=password.' }),
    user_id: optionalText({ by: NOVA, help: 'User id, instead of username and its domain.' }),
    password: secret({ by: NOVA, help: 'Password, for auth_type=password.' }),
    password_file: secretFile('password', { by: NOVA }),
    user_domain_name: optionalText({ by: NOVA, help: 'Domain of username.' }),
    user_domain_id: optionalText({ by: NOVA, help: 'Domain of username, by id.' }),
    project_name: optionalText({ by: NOVA, help: 'Project to scope to.' }),
    project_id: optionalText({ by: NOVA, help: 'Project to scope to, by id.' }),
    project_domain_name: optionalText({ by: NOVA, help: 'Domain of project_name.' }),
    project_domain_id: optionalText({ by: NOVA, help: 'Domain of project_name, by id.' }),
    application_credential_id: optionalText({ by: NOVA, help: 'For auth_type=v3applicationcredential.' }),
    application_credential_name: optionalText({
      by: NOVA,
      help: 'For auth_type=v3applicationcredential, together with the user, instead of application_credential_id.',
    }),
    application_credential_secret: secret({ by: NOVA, help: 'For auth_type=v3applicationcredential.' }),
    application_credential_secret_file: secretFile('application_credential_secret', { by: NOVA }),
    token: secret({ by: NOVA, help: 'For auth_type=v3token.' }),
    token_file: secretFile('token', { by: NOVA }),
    region_name: optionalText({ by: NOVA, help: 'Region of the endpoints.' }),
    valid_interfaces: list(['internal', 'public'], {
      by: NOVA,
      help: 'Endpoint interfaces in order of preference: internal, public, admin.',
    }),
    endpoint_override: optionalUrl(HTTP_URL, { by: NOVA, help: "Nova's endpoint, instead of the catalogue's." }),
    placement_endpoint_override: optionalUrl(HTTP_URL, {
      by: NOVA,
      help: "Placement's endpoint, instead of the catalogue's.",
    }),
    cafile: optionalPath({ by: NOVA, help: 'CA certificates (PEM) to verify the servers with.' }),
    certfile: optionalPath({ by: NOVA, help: 'Client certificate (PEM).' }),
    keyfile: optionalPath({ by: NOVA, help: 'Key of the client certificate (PEM).' }),
    insecure: bool(false, { by: NOVA, help: 'Do not verify certificates.' }),
    timeout: seconds(60, { min: 0.1, by: NOVA, help: 'Limit of one request.' }),
    connect_retries: int(3, { min: 0, by: NOVA, help: 'How often a read is repeated after its connection failed.' }),
    connect_retry_delay: seconds(0.5, {
      min: 0,
      by: NOVA,
      help: 'Wait before the first such retry; it doubles each time.',
    }),
    status_code_retries: int(3, {
      min: 0,
      by: NOVA,
      help: 'How often a read is repeated after the answer 429, 502, 503 or 504. A request that starts or aborts a migration is never repeated.',
    }),
    status_code_retry_delay: seconds(1, {
      min: 0,
      by: NOVA,
      help: 'Wait before the first such retry; it doubles each time.',
    }),
    page_size: int(1000, {
      min: 1,
      max: 100000,
      by: NOVA,
      help: "Items per page of a list. Nova's own limit (max_limit, 1000 by default) may make pages smaller.",
    }),
    hypervisor_types: list(['QEMU', 'KVM'], {
      by: SCORER,
      help: 'Types of the hypervisors that Kronos uses. It ignores all others, such as bare metal.',
    }),
    cells: make<readonly CellPattern[]>('cells', [], 'a comma list of CELL:HOSTS, * for any characters', parseCells, {
      by: SCORER,
      help: 'Cell of each host, e.g. cell1:cmp1*, cell2:cmp2*; the first match counts. No live migration leaves a cell. Not needed in a cloud with one cell.',
    }),
  },
  prometheus: {
    url: optionalUrl(HTTP_URL, {
      by: SCORER,
      help: 'URL of Prometheus or of a server with its API. Needed unless [engine] balance=false.',
    }),
    timeout: seconds(30, { min: 0.1, by: SCORER, help: 'Limit of one query.' }),
    max_retries: int(3, { min: 0, max: 20, by: SCORER, help: 'How often a failed query is repeated.' }),
    retry_backoff: seconds(1, { min: 0, by: SCORER, help: 'Wait before the first retry; it doubles each time.' }),
    staleness_threshold: seconds(300, {
      min: 1,
      by: SCORER,
      help: 'An answer is stale if a series disappeared within this time, or if a sample is older than this.',
    }),
    ca_cert: optionalPath({ by: SCORER, help: 'CA certificates (PEM) to verify the server with.' }),
    client_cert: optionalPath({ by: SCORER, help: 'Client certificate (PEM).' }),
    client_key: optionalPath({ by: SCORER, help: 'Key of the client certificate (PEM).' }),
    verify_ssl: bool(true, { by: SCORER, help: "Verify the server's certificate." }),
    bearer_token: secret({ by: SCORER, help: 'Bearer token.' }),
    bearer_token_file: secretFile('bearer_token', { by: SCORER }),
    username: optionalText({ by: SCORER, help: 'User, for basic authentication.' }),
    password: secret({ by: SCORER, help: 'Password, for basic authentication.' }),
    password_file: secretFile('password', { by: SCORER }),
  },
  nats: {
    servers: urls(['nats://127.0.0.1:4222'], ['nats', 'tls', 'ws', 'wss'], {
      by: EVERYONE,
      help: 'The NATS servers: one, or all of a cluster.',
    }),
    user: optionalText({ by: EVERYONE, help: 'User. {service} stands for the name of the service.' }),
    password: secret({ by: EVERYONE, help: 'Password of user.' }),
    password_file: secretFile('password', { by: EVERYONE }),
    nkey_seed_file: optionalPath({
      by: EVERYONE,
      help: 'File with the nkey seed. {service} stands for the name of the service, as in /etc/kronos/nats/{service}.nk.',
    }),
    credentials_file: optionalPath({
      by: EVERYONE,
      help: 'Credentials file (JWT and seed). {service} stands for the name of the service.',
    }),
    inbox_prefix: make('text', null, 'the beginning of a NATS subject, e.g. _INBOX_viewer', parseInboxPrefix, {
      by: EVERYONE,
      help: 'Prefix of the subjects on which answers arrive; the NATS user may subscribe to no other. Not set: _INBOX_ and the name of the service; for the kronos command, _INBOX_ and user (_INBOX_operator if no user is set, as with an nkey). {service} stands for the name of the service.',
    }),
    tls_ca: optionalPath({ by: EVERYONE, help: 'CA certificates (PEM) to verify the servers with; turns TLS on.' }),
    tls_cert: optionalPath({
      by: EVERYONE,
      help: 'Client certificate (PEM). {service} stands for the name of the service.',
    }),
    tls_key: optionalPath({ by: EVERYONE, help: 'Key of the client certificate (PEM). {service} as above.' }),
    tls_handshake_first: bool(false, {
      by: EVERYONE,
      help: 'Start the connection with TLS, for servers with handshake_first.',
    }),
    request_timeout: seconds(10, { min: 0.1, by: EVERYONE, help: 'Limit of one request to JetStream.' }),
    ack_wait: seconds(30, {
      min: 1,
      max: 3600,
      by: ['executor', 'provision'],
      help: 'JetStream redelivers a task to another executor after its executor has been silent for this long.',
    }),
    replicas: int(1, {
      min: 1,
      max: 5,
      by: [...SERVICES, 'provision'],
      help: 'Copies of each stream: 1, 3 or 5. Use 3 in production, which needs a cluster of at least three servers of 2.11 or later.',
    }),
    log_max_bytes: bytes(8 * 1024 ** 3, {
      min: 1024 ** 2,
      by: [...SERVICES, 'provision'],
      help: 'Limit of the event log, which is never deleted. Services warn at 80 %. When it is full, nothing is planned.',
    }),
    snapshot_max_age: seconds(259200, {
      min: 60,
      by: [...SERVICES, 'provision'],
      help: 'How long snapshots are kept, and how far back a replay reaches.',
    }),
    snapshot_max_bytes: bytes(2 * 1024 ** 3, {
      min: 1024 ** 2,
      by: [...SERVICES, 'provision'],
      help: 'Limit of the kept snapshots; the oldest are dropped first.',
    }),
  },
  ledger: {
    checkpoint_interval: seconds(300, {
      min: 1,
      by: LEDGER,
      help: 'Interval at which the ledger writes the folded state as a checkpoint.',
    }),
    checkpoint_events: int(10000, { min: 1, by: LEDGER, help: 'A checkpoint is also written after this many events.' }),
    archive_dir: optionalPath({
      by: LEDGER,
      help: 'Directory for a second copy of the event log, as one JSON object per line. Not set: no archive.',
    }),
    archive_max_file_bytes: bytes(64 * 1024 ** 2, {
      min: 1024,
      by: LEDGER,
      help: 'The ledger starts the next file of the archive when a file has reached this size.',
    }),
    console: bool(true, {
      by: LEDGER,
      help: 'Serve the console to browsers. It is read-only unless [console] acting is set.',
    }),
  },
  console: {
    acting: bool(false, {
      by: LEDGER,
      help: 'People can log in to the console with their OpenStack credentials and give commands: approve plans, pause, drain and so on. Needs auth_url, project_name and a NATS user of its own.',
    }),
    auth_url: optionalUrl(HTTP_URL, { by: LEDGER, help: 'Keystone, where people log in.' }),
    cafile: optionalPath({ by: LEDGER, help: 'CA certificates (PEM) to verify Keystone with.' }),
    insecure: bool(false, { by: LEDGER, help: "Do not verify Keystone's certificate." }),
    user_domain_name: text('Default', { by: LEDGER, help: 'Domain of the people who name none when they log in.' }),
    project_name: optionalText({
      by: LEDGER,
      help: 'Project on which a person needs one of roles. A role on another project does not count.',
    }),
    project_domain_name: text('Default', { by: LEDGER, help: 'Domain of the project.' }),
    roles: list(['kronos_operator'], {
      by: LEDGER,
      help: 'Roles of Keystone that may give commands; one of them is enough.',
    }),
    custodian_roles: list([], {
      by: LEDGER,
      help: 'Roles of Keystone that may skip unreadable events (kronos log skip), beside one of roles. Empty: nobody skips them from the console. Needs a NATS user of its own.',
    }),
    idle_timeout: seconds(900, {
      min: 60,
      max: 86400,
      by: LEDGER,
      help: 'A session ends after this time without a command. It never outlives its Keystone token.',
    }),
    max_sessions: int(64, { min: 1, max: 1000, by: LEDGER, help: 'Limit of concurrent sessions.' }),
    nats_user: optionalText({
      by: LEDGER,
      help: 'User with which the console writes commands; deploy/nats names it console. The user of the ledger may not write them.',
    }),
    nats_password: secret({ by: LEDGER, help: 'Password of nats_user.' }),
    nats_password_file: secretFile('nats_password', { by: LEDGER }),
    nats_nkey_seed_file: optionalPath({ by: LEDGER, help: 'File with the nkey seed of that user.' }),
    nats_credentials_file: optionalPath({ by: LEDGER, help: 'Credentials file (JWT and seed) of that user.' }),
    custodian_user: optionalText({
      by: LEDGER,
      help: 'User with which the console skips events; deploy/nats names it custodian. The user nats_user may not skip them.',
    }),
    custodian_password: secret({ by: LEDGER, help: 'Password of custodian_user.' }),
    custodian_password_file: secretFile('custodian_password', { by: LEDGER }),
    custodian_nkey_seed_file: optionalPath({ by: LEDGER, help: 'File with the nkey seed of that user.' }),
    custodian_credentials_file: optionalPath({ by: LEDGER, help: 'Credentials file (JWT and seed) of that user.' }),
  },
  http: {
    address: text('127.0.0.1', {
      by: SERVICES,
      help: 'Address on which each service serves /healthz, /readyz and /metrics, and the ledger its console. 0.0.0.0 or ::: all addresses. Reading needs no password: use a network policy or a firewall to limit who may connect.',
    }),
    allowed_hosts: list([], {
      by: SERVICES,
      help: 'Host names that clients may use, besides localhost, address and the address that they connect to: the name of a Kubernetes service or of a reverse proxy. A request with another Host header gets 421, so that no web page can read answers through its own DNS name (DNS rebinding).',
    }),
    scorer_port: int(9781, {
      min: 0,
      max: 65535,
      by: ['scorer'],
      help: 'Port of the scorer. 0: any free port, which is logged.',
    }),
    planner_port: int(9782, { min: 0, max: 65535, by: ['planner'], help: 'Port of the planner.' }),
    executor_port: int(9783, { min: 0, max: 65535, by: ['executor'], help: 'Port of the executor.' }),
    ledger_port: int(9784, { min: 0, max: 65535, by: ['ledger'], help: 'Port of the ledger.' }),
  },
  log: {
    level: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info', {
      by: EVERYONE,
      help: 'Log this level and the levels above it.',
    }),
    format: choice(['auto', 'json', 'pretty'], 'auto', {
      by: EVERYONE,
      help: 'json: one object per line. pretty: for people. auto: pretty on a terminal, else json.',
    }),
  },
  telemetry: {
    otlp_endpoint: optionalUrl(HTTP_URL, {
      by: EVERYONE,
      help: 'OTLP/HTTP receiver for traces, e.g. http://localhost:4318; /v1/traces is appended. Not set: no traces are sent.',
    }),
    otlp_headers: secret({
      by: EVERYONE,
      help: 'Headers for the receiver, as a comma list of NAME=VALUE. They hold tokens and are secret.',
    }),
    otlp_headers_file: secretFile('otlp_headers', { by: EVERYONE }),
    otlp_timeout: seconds(10, { min: 0.1, by: EVERYONE, help: 'Limit of one export.' }),
    service_name: text('kronos-{service}', {
      by: EVERYONE,
      help: 'service.name of traces and metrics. {service} stands for the name of the service.',
    }),
    host_metrics: bool(true, {
      by: ['scorer'],
      help: 'Serve kronos_host_value_ratio, a series for each host and policy. false: the dashboard of hosts stays empty.',
    }),
    sampling_ratio: float(1, {
      min: 0,
      max: 1,
      by: EVERYONE,
      help: 'Share of the traces that are recorded. A trace that arrives sampled is always continued.',
    }),
  },
} as const;

/** The options of a section `[notify:NAME]`. */
export const sinkOptions = {
  url: make('secret', null as Secret | null, 'a URL (http, https)', parseSinkUrl, {
    by: LEDGER,
    help: 'Where notifications are posted. A secret, as that of an incoming webhook is. Redirects are not followed. format = alertmanager: the address of Alertmanager; /api/v2/alerts is appended.',
  }),
  url_file: secretFile('url', { by: LEDGER }),
  format: choice(['cloudevents', 'slack', 'alertmanager'], 'cloudevents', {
    by: LEDGER,
    help: 'cloudevents: CloudEvents 1.0 in structured mode, as JSON. slack: what the incoming webhooks of Slack, Mattermost and Rocket.Chat take. alertmanager: alarms, which Alertmanager groups and sends on.',
  }),
  types: list(['alarm.*'], {
    by: LEDGER,
    help: 'What is sent: types of events and alarm.CAUSE, where * stands for any run of characters: alarm.*, migration.failed, host.*',
  }),
  aggregates: list(['*'], {
    by: LEDGER,
    help: 'Aggregates whose events and alarms are sent, where * stands for any run of characters. What concerns all aggregates is always sent.',
  }),
  secret: make('secret', null as Secret | null, 'a secret', parseSigningSecret, {
    by: LEDGER,
    help: 'Signs each notification as Standard Webhooks does: 24 to 64 bytes in base64, usually behind whsec_. Not set: no signature.',
  }),
  secret_file: secretFile('secret', { by: LEDGER }),
  authorization: secret({ by: LEDGER, help: 'Value of the header Authorization, e.g. Bearer TOKEN.' }),
  authorization_file: secretFile('authorization', { by: LEDGER }),
  ca_cert: optionalPath({ by: LEDGER, help: 'CA certificates (PEM) to verify the receiver with.' }),
  timeout: seconds(10, { min: 0.1, max: 25, by: LEDGER, help: 'Limit of one attempt.' }),
} as const;

export type SinkOptions = {
  readonly [O in keyof typeof sinkOptions & string as Camel<O>]: (typeof sinkOptions)[O] extends Option<infer T>
    ? T
    : never;
};

type Options = typeof options;
export type SectionName = keyof Options;

/** `section.option` of an option that exists. */
export type OptionPath = { [S in SectionName]: `${S}.${keyof Options[S] & string}` }[SectionName];

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

/** `evaluation_interval` -> `evaluationInterval`. */
export const camel = (name: string): string =>
  name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

type Sections = {
  readonly [S in SectionName]: {
    readonly [O in keyof Options[S] & string as Camel<O>]: Options[S][O] extends Option<infer T> ? T : never;
  };
};

/**
 * The configuration: `config.engine.evaluationInterval`. Every option is there, absent ones as null; durations are
 * seconds, sizes bytes, secrets {@link Secret} (also those that came from a file).
 */
export type Config = Sections & {
  /** The options of the sections `[aggregate:NAME]`, by aggregate. Use `aggregateConfig` to read an aggregate's options. */
  readonly overrides: ReadonlyMap<string, Partial<Sections['engine']>>;
  /** The sections `[notify:NAME]`, by name. */
  readonly sinks: ReadonlyMap<string, SinkOptions>;
};

/** The options of `[engine]` that are the same for every aggregate, and why. A section `[aggregate:NAME]` may set the others. */
export const commonToAggregates: ReadonlyMap<string, string> = new Map<keyof Options['engine'], string>([
  ['aggregates', 'it is the list of the aggregates'],
  ['include_unassigned_hosts', 'it belongs to the list of the aggregates'],
  ['evaluation_interval', 'the scorer reads the cloud once for all aggregates'],
  ['max_clock_skew', 'each service has one clock'],
  ['search_threads', 'the planner has the same threads for all aggregates'],
  ['opt_out', 'it applies to servers wherever they run'],
]);

/** The table for code that goes over it. */
export const sections: ReadonlyMap<string, ReadonlyMap<string, Option<unknown>>> = new Map(
  Object.entries(options).map(([name, section]) => [name, new Map<string, Option<unknown>>(Object.entries(section))]),
);

/** One line about each section. */
export const sectionHelp: Readonly<Record<SectionName, string>> = {
  engine: 'What is balanced, how often, and by which rules.',
  executor:
    'How moves are carried out. The host breaker stands here and is read by the planner, which chooses the hosts.',
  cells: 'Moves between cells, which an operator starts with kronos cells plan.',
  inventory: 'How the servers of the cloud are kept up to date.',
  nova: 'How Nova, Placement and Keystone are reached (the options of keystoneauth), and what counts there.',
  prometheus: 'How Prometheus is reached.',
  nats: 'How NATS is reached, and how large the streams may become.',
  ledger: 'Checkpoints and the archive of the event log.',
  console: 'Commands from the console; off by default.',
  http: 'The HTTP server of each service.',
  log: 'Logging, to standard output.',
  telemetry: 'OpenTelemetry traces. Metrics are served on /metrics in any case.',
};
