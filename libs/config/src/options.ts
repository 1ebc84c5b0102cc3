import {
  MAX_BREAKER_SECONDS,
  MAX_COOLDOWN_SECONDS,
  MAX_QUARANTINE_SECONDS,
  MAX_RETRY_WAIT_SECONDS,
} from '@kronos/contracts/limits';
import { ALL, UNASSIGNED } from '@kronos/contracts/names';
import { parseBlackout, parseWindow } from '@kronos/rules';
import {
  type CellPattern,
  type Parsed,
  parseBool,
  parseBytes,
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
  type Range,
  rangeText,
} from './kinds.ts';
import type { Secret } from './secret.ts';

/** Who reads an option. `cli` is every command of `kronos` that is neither a service nor `provision`. */
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
  /** What it takes, in words: `a number from 0 to 1`, `auto or manual`. */
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
      help: `File that holds ${fills}, so that no secret stands in kronos.conf. White space around it is ignored.`,
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
const HTTP_URL = ['http', 'https'] as const;

/**
 * Every option of kronos.conf: the one table from which the parser, the types, `kronos config sample` and
 * docs/configuration.md come. Durations are seconds, sizes bytes.
 */
export const options = {
  engine: {
    aggregates: list([], {
      by: EVERYONE,
      help: `Nova host aggregates that Kronos balances, by name. At least one of aggregates and include_unassigned_hosts must be set. ${UNASSIGNED} and ${ALL} are names of Kronos's own and cannot be used.`,
    }),
    include_unassigned_hosts: bool(false, {
      by: EVERYONE,
      help: `Also balance the pool of hypervisors that belong to no aggregate; in events and commands it is called ${UNASSIGNED}.`,
    }),
    policies_file: path('/etc/kronos/policies.yaml', { by: SCORER, help: 'The policies.' }),
    evaluation_interval: seconds(60, {
      min: 1,
      max: 86400,
      by: ['scorer', 'planner'],
      help: 'How often each aggregate is observed and decided.',
    }),
    dry_run: bool(true, {
      by: PLANNING,
      help: 'Plan and record, and release nothing. A new installation moves nothing until this is set to false.',
    }),
    approval: choice(['auto', 'manual'], 'auto', {
      by: PLANNING,
      help: 'auto: a plan is released when it is made. manual: a plan waits for kronos approve.',
    }),
    approval_ttl: seconds(900, { min: 1, by: PLANNING, help: 'How long a plan waits for approval before it expires.' }),
    plan_ttl: seconds(3600, {
      min: 1,
      by: PLANNING,
      help: 'How long after its release a task may still be started; later it is cancelled.',
    }),
    balance: bool(true, {
      by: ['scorer', 'planner'],
      help: 'false is the rules-only mode: no policies, no Prometheus; only evacuation and affinity repair, which then choose by free capacity.',
    }),
    planner: choice(['search', 'greedy'], 'search', {
      by: PLANNING,
      help: 'How a spread plan is found: search judges the plan as a whole (plateaus, swaps, chains), greedy takes the best single move again and again.',
    }),
    search_work_limit: int(20_000_000, {
      min: 1,
      by: PLANNING,
      help: 'Candidates that planner=search may evaluate for one plan: its only limit, counted and not timed, so that a replay gives the same plan.',
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
      help: 'planner=search starts a plan when a policy is above its threshold, and aims at this times the threshold, so that the next noise does not start the next plan. A policy can set its own target.',
    }),
    move_overhead_gib: float(8, {
      min: 0,
      max: 1_000_000,
      by: PLANNING,
      help: 'Cost of a move beside the memory and the local disk that it copies, in GiB. Of the plans that reach every target, planner=search takes the one of the lowest cost.',
    }),
    min_instance_age: seconds(0, {
      min: 0,
      by: PLANNING,
      help: 'VMs younger than this are not moved, except by evacuation. VMs of unknown age count as younger.',
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
    cooldown: seconds(600, {
      min: 0,
      max: MAX_COOLDOWN_SECONDS,
      by: PLANNING,
      help: 'How long an aggregate is left alone after a plan of it was released.',
    }),
    instance_cooldown: seconds(1800, {
      min: 0,
      max: MAX_COOLDOWN_SECONDS,
      by: PLANNING,
      help: 'How long a VM is left alone after a move of it was released.',
    }),
    adaptive_cooldown_factor: float(1, {
      min: 1,
      max: 100,
      by: PLANNING,
      help: 'instance_cooldown is multiplied by this factor to the number of recent moves of the VM.',
    }),
    instance_quarantine_seconds: seconds(3600, {
      min: -1,
      max: MAX_QUARANTINE_SECONDS,
      by: PLANNING,
      help: 'How long a VM is left alone after a move of it failed for good. -1: until an operator releases it.',
    }),
    settle_seconds: seconds(120, {
      min: 0,
      by: PLANNING,
      help: 'A snapshot is decided only if it was observed this long after the last move of the aggregate ended, so that the metrics show the move. Use at least the time range of the queries.',
    }),
    evacuate_disabled_hosts: bool(false, {
      by: PLANNING,
      help: 'Move VMs off hosts whose nova-compute is disabled and up.',
    }),
    windows: listOf('a comma list of windows', parseWindow, {
      by: PLANNING,
      help: 'When moves may start, in the local time of timezone, such as Mon-Fri 22:00-06:00, Sat-Sun 00:00-24:00. Empty: at all times. Outside the windows plans are made and recorded, and not released; a released move whose window has closed before it started is cancelled; a move that runs goes on. A window that ends on the next day belongs to the day of its start.',
    }),
    blackouts: listOf('a comma list of dates and ranges', parseBlackout, {
      by: PLANNING,
      help: 'Dates and ranges in which no move starts, windows or not, in the local time of timezone, such as 2026-12-24/2027-01-02 (the last day included) or 2026-12-24T18:00/2026-12-26T06:00.',
    }),
    timezone: make('text', 'UTC', 'a time zone of the IANA database', parseTimeZone, {
      by: PLANNING,
      help: 'The time zone of windows and blackouts, such as Europe/Berlin. A local time that is skipped in spring is the moment of the change; of one that comes twice in autumn the first counts, and for the end of a blackout the second.',
    }),
    evacuation_ignores_windows: bool(false, {
      by: PLANNING,
      help: 'Evacuation steps are released at any time, also in blackouts and for servers with windows of their own.',
    }),
    evacuation_ignores_cooldown: bool(false, {
      by: PLANNING,
      help: "Evacuation steps pass the aggregate's cooldown, and nothing else.",
    }),
    enforce_hard_affinity: bool(false, {
      by: PLANNING,
      help: 'Repair violated server groups with the policies affinity and anti-affinity.',
    }),
    enforce_soft_affinity: bool(false, {
      by: PLANNING,
      help: 'Repair violated server groups with the policies soft-affinity and soft-anti-affinity.',
    }),
    restrict_to_az: bool(false, { by: PLANNING, help: 'A VM stays in its availability zone.' }),
    require_all_policies: bool(false, {
      by: PLANNING,
      help: 'Plan nothing in a cycle in which a policy cannot take part for want of data.',
    }),
    pack_headroom_hosts: int(0, {
      min: 0,
      by: PLANNING,
      help: 'Pack mode: the load of so many of the largest hosts must stay placeable elsewhere.',
    }),
    pack_reach_cycles: int(3, {
      min: 1,
      by: PLANNING,
      help: 'Pack mode: a drain is begun only if all VMs of the host can leave within this many cycles.',
    }),
    allow_parking: bool(false, {
      by: PLANNING,
      help: 'A plan may move a VM to a host for a while to make room; such a move counts as two.',
    }),
    alternates: int(2, {
      min: 0,
      max: 10,
      by: PLANNING,
      help: 'Further legal destinations that each step carries, for when the first one refuses.',
    }),
    stagger_seconds: seconds(0, {
      min: 0,
      by: PLANNING,
      help: 'Gap between the earliest start of one step and of the next. 0: only the caps of [executor] hold steps back.',
    }),
    max_clock_skew: seconds(5, {
      min: 0.1,
      by: SERVICES,
      help: "A reader that sees an event's time differ by more than this from the NATS server's stamp warns and is not ready; such a snapshot is not planned. A service whose own clock differs by more from the server's decides and starts nothing.",
    }),
    opt_out: list(['kronos:exclude'], {
      by: NOVA,
      help: 'A server whose metadata has one of these keys (with any value but false), or that carries one of them as a tag, is never moved.',
    }),
  },
  executor: {
    max_concurrent_migrations: int(4, {
      min: 1,
      by: EXECUTOR,
      help: 'Moves in flight per aggregate, over all replicas of the executor.',
    }),
    max_outbound_per_host: int(1, {
      min: 1,
      by: EXECUTOR,
      help: "Moves in flight off one host. Nova's own max_concurrent_live_migrations is 1 by default: more would wait in its queue.",
    }),
    max_inbound_per_host: int(2, {
      min: 1,
      by: EXECUTOR,
      help: 'Moves in flight onto one host. Nova has no such limit.',
    }),
    max_concurrent_per_group: int(1, { min: 1, by: EXECUTOR, help: 'Moves in flight of members of one server group.' }),
    max_retries: int(3, { min: 0, max: 20, by: EXECUTOR, help: 'Attempts at a move after the first one.' }),
    retry_backoff: seconds(30, {
      min: 0,
      max: MAX_RETRY_WAIT_SECONDS,
      by: EXECUTOR,
      help: 'Wait before the second attempt on the same destination; doubled for each further one. The next alternate is tried at once.',
    }),
    retry_backoff_max: seconds(600, {
      min: 0,
      max: MAX_RETRY_WAIT_SECONDS,
      by: EXECUTOR,
      help: 'The wait between two attempts grows no further than this.',
    }),
    poll_interval: seconds(5, {
      min: 0.05,
      max: 300,
      by: EXECUTOR,
      help: 'How often Nova is asked about a running migration.',
    }),
    queue_timeout: seconds(1800, {
      min: 1,
      by: EXECUTOR,
      help: 'How long a migration may wait in Nova before its status is running. The other deadlines count from there.',
    }),
    deadline_per_gib: seconds(60, {
      min: 0,
      by: EXECUTOR,
      help: "Deadline of a running migration per GiB of the VM's RAM and of its local disk; one that is on its way at a slower pace gets more, up to hard_timeout. Nova's own is 800.",
    }),
    deadline_min: seconds(600, { min: 1, by: EXECUTOR, help: 'No deadline is shorter than this.' }),
    no_progress_timeout: seconds(600, {
      min: 1,
      by: EXECUTOR,
      help: 'A running migration whose remaining bytes have reached no new minimum for this long counts as past its deadline.',
    }),
    on_deadline: choice(['abort', 'wait'], 'abort', {
      by: EXECUTOR,
      help: 'What happens at the deadline: abort the migration, or wait for it up to hard_timeout and abort it then.',
    }),
    hard_timeout: seconds(43200, {
      min: 1,
      by: EXECUTOR,
      help: 'Longest time that a slow pace or on_deadline=wait gives a running migration; then it is aborted. A longer deadline by size takes its place.',
    }),
    breaker_failures: int(3, {
      min: 1,
      by: PLANNING,
      help: 'Host breaker: so many failed moves onto one host within breaker_window take it out as a destination.',
    }),
    breaker_window: seconds(1800, {
      min: 1,
      max: MAX_BREAKER_SECONDS,
      by: PLANNING,
      help: 'Host breaker: failures further apart than this do not add up.',
    }),
    breaker_duration: seconds(1800, {
      min: 1,
      max: MAX_BREAKER_SECONDS,
      by: PLANNING,
      help: 'Host breaker: how long the host is out.',
    }),
    dry_run: bool(false, {
      by: EXECUTOR,
      help: 'Check every task against the cloud, and never ask Nova to migrate; the result is migration.skipped.',
    }),
    force: bool(false, {
      by: EXECUTOR,
      help: "Bypass Nova's scheduler. Only for clouds below compute microversion 2.68; every forced move is logged and recorded as such.",
    }),
  },
  inventory: {
    mode: choice(['api', 'changes', 'notifications'], 'api', {
      by: SCORER,
      help: 'How the servers are read. api: all of them in every cycle. changes: all of them once, then only what changed (changes-since), compared with Nova every sync_interval. notifications: all of them once, then what versioned notifications of Nova name, compared likewise; the servers of a host whose nova-compute sends none are read in every cycle.',
    }),
    sync_interval: seconds(300, {
      min: 1,
      by: SCORER,
      help: 'How often the servers of each host are compared with the ids that Nova lists for it, unless mode=api. A host that differs is read again.',
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
      help: 'Queue that Kronos declares and binds to the exchange. All scorers of an installation share it; no other program may consume from it.',
    }),
    queue_type: choice(['quorum', 'classic'], 'quorum', {
      by: SCORER,
      help: 'Type of the queue. A queue that exists with another type must be deleted first.',
    }),
  },
  nova: {
    cloud: optionalText({
      by: NOVA,
      help: 'Name of a cloud in clouds.yaml. It takes the place of all authentication options below.',
    }),
    clouds_file: optionalPath({
      by: NOVA,
      help: 'The clouds.yaml for cloud. Default: ./clouds.yaml, ~/.config/openstack/clouds.yaml, /etc/openstack/clouds.yaml, whichever comes first.',
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
    connect_retries: int(3, { min: 0, by: NOVA, help: 'How often a read whose connection failed is repeated.' }),
    connect_retry_delay: seconds(0.5, {
      min: 0,
      by: NOVA,
      help: 'Wait before the first such repetition; doubled each time.',
    }),
    status_code_retries: int(3, {
      min: 0,
      by: NOVA,
      help: 'How often a read that was answered with 429, 502, 503 or 504 is repeated. What starts or aborts a migration is never repeated.',
    }),
    status_code_retry_delay: seconds(1, {
      min: 0,
      by: NOVA,
      help: 'Wait before the first such repetition; doubled each time.',
    }),
    page_size: int(1000, {
      min: 1,
      max: 100000,
      by: NOVA,
      help: "Items asked for per page of a list. Nova's own limit (max_limit, 1000 by default) may make pages smaller.",
    }),
    hypervisor_types: list(['QEMU', 'KVM'], {
      by: SCORER,
      help: 'Hypervisors that count; others, bare metal among them, never do.',
    }),
    cells: make<readonly CellPattern[]>('cells', [], 'a comma list of CELL:HOSTS, * for any characters', parseCells, {
      by: SCORER,
      help: 'Which cell each host is in, e.g. cell1:cmp1*, cell2:cmp2*; the first match counts. No live migration leaves a cell. Not needed in a cloud with one cell.',
    }),
  },
  prometheus: {
    url: optionalUrl(HTTP_URL, {
      by: SCORER,
      help: 'Prometheus, or what speaks its API. Needed unless [engine] balance=false.',
    }),
    timeout: seconds(30, { min: 0.1, by: SCORER, help: 'Limit of one query.' }),
    max_retries: int(3, { min: 0, max: 20, by: SCORER, help: 'How often a query that failed is repeated.' }),
    retry_backoff: seconds(1, { min: 0, by: SCORER, help: 'Wait before the first repetition; doubled each time.' }),
    staleness_threshold: seconds(300, {
      min: 1,
      by: SCORER,
      help: 'A series that was there within this time and is gone, or a sample older than this, makes an answer stale.',
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
      help: 'The NATS servers, one or all of a cluster.',
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
      help: 'Prefix of the subjects on which answers arrive; the NATS user may subscribe to no other. Not set: _INBOX_ and the name of the service, and for the kronos command _INBOX_ and user (_INBOX_operator where no user is set, as with an nkey). {service} stands for the name of the service.',
    }),
    tls_ca: optionalPath({ by: EVERYONE, help: 'CA certificates (PEM) to verify the servers with; turns TLS on.' }),
    tls_cert: optionalPath({
      by: EVERYONE,
      help: 'Client certificate (PEM). {service} stands for the name of the service.',
    }),
    tls_key: optionalPath({ by: EVERYONE, help: 'Key of the client certificate (PEM). {service} as above.' }),
    tls_handshake_first: bool(false, {
      by: EVERYONE,
      help: 'Begin with TLS, as servers with handshake_first ask for.',
    }),
    request_timeout: seconds(10, { min: 0.1, by: EVERYONE, help: 'Limit of one request to JetStream.' }),
    ack_wait: seconds(30, {
      min: 1,
      max: 3600,
      by: ['executor', 'provision'],
      help: 'A task whose executor has been silent for this long is given to another one.',
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
      help: 'Limit of the event log, which is kept for ever. Services warn at 80 %; when it is full nothing is planned.',
    }),
    snapshot_max_age: seconds(259200, {
      min: 60,
      by: [...SERVICES, 'provision'],
      help: 'How long snapshots are kept, and how far back a replay reaches.',
    }),
    snapshot_max_bytes: bytes(2 * 1024 ** 3, {
      min: 1024 ** 2,
      by: [...SERVICES, 'provision'],
      help: 'Limit of the kept snapshots; the oldest go first.',
    }),
  },
  ledger: {
    checkpoint_interval: seconds(300, {
      min: 1,
      by: LEDGER,
      help: 'How often the folded state is written as a checkpoint.',
    }),
    checkpoint_events: int(10000, { min: 1, by: LEDGER, help: 'A checkpoint is also written after this many events.' }),
    archive_dir: optionalPath({
      by: LEDGER,
      help: 'Directory for a second copy of the event log, as one JSON object per line. Not set: no archive.',
    }),
    archive_max_file_bytes: bytes(64 * 1024 ** 2, {
      min: 1024,
      by: LEDGER,
      help: 'A file of the archive that has reached this size is closed and the next one begun.',
    }),
    console: bool(true, { by: LEDGER, help: 'Serve the console (read-only) to browsers.' }),
  },
  http: {
    address: text('127.0.0.1', {
      by: SERVICES,
      help: 'Address on which each service serves /healthz, /readyz and /metrics, and the ledger its console. 0.0.0.0 or :: for all; nothing on it asks for a password, so let a network policy or a firewall decide who may connect.',
    }),
    allowed_hosts: list([], {
      by: SERVICES,
      help: 'Host names under which clients may ask, beside localhost, address and the address that they connect to: the name of a Kubernetes service, or of a reverse proxy. A request with another Host header gets 421, so that no web page can read answers through a DNS name of its own.',
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
      help: 'What is logged: this level and the ones above it.',
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
      help: 'Headers for the receiver, as a comma list of NAME=VALUE: secret, because they hold tokens.',
    }),
    otlp_headers_file: secretFile('otlp_headers', { by: EVERYONE }),
    otlp_timeout: seconds(10, { min: 0.1, by: EVERYONE, help: 'Limit of one export.' }),
    service_name: text('kronos-{service}', {
      by: EVERYONE,
      help: 'service.name of traces and metrics. {service} stands for the name of the service.',
    }),
    sampling_ratio: float(1, {
      min: 0,
      max: 1,
      by: EVERYONE,
      help: 'Share of the traces that are recorded; one that came in sampled is always continued.',
    }),
  },
} as const;

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
  /** What the sections `[aggregate:NAME]` set, by aggregate. Use `aggregateConfig` to read an aggregate's options. */
  readonly overrides: ReadonlyMap<string, Partial<Sections['engine']>>;
};

/** The options of `[engine]` that are the same for every aggregate, and why. A section `[aggregate:NAME]` may set the others. */
export const commonToAggregates: ReadonlyMap<string, string> = new Map<keyof Options['engine'], string>([
  ['aggregates', 'it is the list of the aggregates'],
  ['include_unassigned_hosts', 'it belongs to the list of the aggregates'],
  ['evaluation_interval', 'the scorer reads the cloud once for all aggregates'],
  ['max_clock_skew', 'each service has one clock'],
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
  inventory: 'How the servers of the cloud are kept up to date.',
  nova: 'How Nova, Placement and Keystone are reached (the options of keystoneauth), and what counts there.',
  prometheus: 'How Prometheus is reached.',
  nats: 'How NATS is reached, and how large the streams may become.',
  ledger: 'Checkpoints and the archive of the event log.',
  http: 'The HTTP server of each service.',
  log: 'Logging, to standard output.',
  telemetry: 'OpenTelemetry traces. Metrics are served on /metrics in any case.',
};
