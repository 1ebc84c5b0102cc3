import { ALL, UNASSIGNED } from '@kronos/contracts/names';
import type { Problem } from './errors.ts';
import { headersOption, parseHeaders } from './kinds.ts';
import { type Config, camel, type OptionPath, type SectionName } from './options.ts';
import { aggregateKey } from './overrides.ts';
import { aggregateConfig, scopeOf } from './scope.ts';
import type { Role, Source } from './source.ts';
import { parseTransportUrl } from './transportUrl.ts';

/** The input of the rules over several options. */
export interface RuleInput {
  readonly file: string;
  readonly config: Config;
  readonly role: Role;
  readonly sources: ReadonlyMap<string, Source>;
  /** Options whose own value could not be read: rules say nothing more about them. */
  readonly broken: ReadonlySet<string>;
  readonly reads: (section: string, option: string) => boolean;
}

/** The rules that concern more than one option, or more than the form of one. */
export function checkRules(input: RuleInput): Problem[] {
  const rules = new Rules(input);
  scope(rules);
  if (input.reads('nova', 'auth_type')) nova(rules);
  if (input.reads('prometheus', 'url')) prometheus(rules);
  if (input.reads('inventory', 'transport_url')) inventory(rules);
  if (input.reads('console', 'acting')) acting(rules);
  nats(rules);
  executor(rules);
  cells(rules);
  engine(rules);
  return [...rules.problems, ...aggregates(input)];
}

class Rules {
  readonly problems: Problem[] = [];
  readonly input: RuleInput;
  readonly config: Config;

  constructor(input: RuleInput) {
    this.input = input;
    this.config = input.config;
  }

  /** Set to something, or tried to. */
  has(path: OptionPath): boolean {
    if (this.input.broken.has(path)) return true;
    const [section, option] = split(path);
    const value: unknown = Reflect.get(this.config[section], camel(option));
    return value !== null && value !== undefined;
  }

  /** A problem at the place where the option stands, or at the file if it stands nowhere. */
  problem(path: OptionPath, problem: string, remedy: string): void {
    if (this.input.broken.has(path)) return;
    const source = this.input.sources.get(path);
    this.problems.push(
      source === undefined
        ? { file: this.input.file, line: null, option: written(path), problem, remedy }
        : { ...source, problem, remedy },
    );
  }

  /** Both or none. */
  pair(a: OptionPath, b: OptionPath): void {
    if (this.has(a) && !this.has(b)) this.problem(a, `is set without ${written(b)}`, 'Set both, or none.');
    if (this.has(b) && !this.has(a)) this.problem(b, `is set without ${written(a)}`, 'Set both, or none.');
  }

  /** At most one way to authenticate. Each group has the options of one way; an error names the first that is set. */
  oneLogin(groups: readonly (readonly OptionPath[])[]): void {
    const found = groups.flatMap((group) => group.find((path) => this.has(path)) ?? []);
    const [first, second] = found;
    if (first === undefined || second === undefined) return;
    this.problem(second, `is set beside ${written(first)}`, 'Keep one way to authenticate.');
  }
}

function split(path: OptionPath): [SectionName, string] {
  const dot = path.indexOf('.');
  return [path.slice(0, dot) as SectionName, path.slice(dot + 1)];
}

/** `[engine] cooldown` */
function written(path: OptionPath): string {
  const [section, option] = split(path);
  return `[${section}] ${option}`;
}

function scope(rules: Rules): void {
  const { aggregates, includeUnassignedHosts } = rules.config.engine;
  if (aggregates.length === 0 && !includeUnassignedHosts) {
    const problem = 'is empty and include_unassigned_hosts is false: there is nothing to balance';
    const remedy = 'Name Nova host aggregates in aggregates, or set include_unassigned_hosts = true, or both.';
    rules.problem('engine.aggregates', problem, remedy);
  }
  for (const name of new Set(aggregates.filter((a, i) => aggregates.indexOf(a) !== i)))
    rules.problem('engine.aggregates', `names ${JSON.stringify(name)} twice`, 'Name it once.');
  for (const name of aggregates) {
    if (name === UNASSIGNED || name === ALL) {
      const instead =
        name === UNASSIGNED ? ' For the pool of unassigned hosts set include_unassigned_hosts = true.' : '';
      const remedy = `Rename the aggregate, or leave it out.${instead}`;
      rules.problem('engine.aggregates', `names ${name}, which is a name of Kronos's own`, remedy);
    } else if (!name.isWellFormed()) {
      rules.problem('engine.aggregates', 'holds a name that is not well-formed Unicode', 'Save the file as UTF-8.');
    }
  }
}

const NOVA_AUTH = [
  'nova.auth_url',
  'nova.username',
  'nova.user_id',
  'nova.password',
  'nova.user_domain_name',
  'nova.user_domain_id',
  'nova.project_name',
  'nova.project_id',
  'nova.project_domain_name',
  'nova.project_domain_id',
  'nova.application_credential_id',
  'nova.application_credential_name',
  'nova.application_credential_secret',
  'nova.token',
] as const satisfies readonly OptionPath[];

/** Reports that an option, or one of its alternatives, is not set. */
type Need = (path: OptionPath, alternatives?: readonly OptionPath[]) => void;

function userDomain(rules: Rules, need: Need): void {
  if (rules.has('nova.username')) need('nova.user_domain_name', ['nova.user_domain_id']);
}

function password(rules: Rules, need: Need): void {
  need('nova.username', ['nova.user_id']);
  need('nova.password', ['nova.password_file']);
  userDomain(rules, need);
  need('nova.project_name', ['nova.project_id']);
}

function applicationCredential(rules: Rules, need: Need): void {
  need('nova.application_credential_id', ['nova.application_credential_name']);
  need('nova.application_credential_secret', ['nova.application_credential_secret_file']);
  if (rules.has('nova.application_credential_name') && !rules.has('nova.application_credential_id')) {
    need('nova.username', ['nova.user_id']);
    userDomain(rules, need);
  }
  for (const path of ['nova.project_name', 'nova.project_id'] as const)
    if (rules.has(path))
      rules.problem(path, 'is set, and an application credential has its project already', 'Take it away.');
}

function nova(rules: Rules): void {
  const { authType } = rules.config.nova;
  if (rules.has('nova.cloud')) {
    for (const path of [...NOVA_AUTH, 'nova.auth_type'] as const)
      if (path === 'nova.auth_type' ? rules.input.sources.has(path) : rules.has(path))
        rules.problem(path, `is set beside ${written('nova.cloud')}`, 'Keep the cloud, or the authentication options.');
    interfaces(rules);
    return;
  }
  if (rules.has('nova.clouds_file'))
    rules.problem('nova.clouds_file', 'is set without [nova] cloud', 'Name the cloud.');
  if (!NOVA_AUTH.some((path) => rules.has(path)) && !rules.input.broken.has('nova.auth_type')) {
    const remedy = 'Set cloud to the name of a cloud in clouds.yaml, or auth_url and the options of auth_type.';
    rules.problem('nova.cloud', 'is not set, and neither is auth_url: the cloud cannot be reached', remedy);
    interfaces(rules);
    return;
  }
  const need: Need = (path, alternatives = []) => {
    if (rules.has(path) || alternatives.some((p) => rules.has(p))) return;
    const names = [path, ...alternatives].map(written).join(' or ');
    rules.problem(path, `is not set, and auth_type=${authType} needs it`, `Set ${names}.`);
  };
  if (rules.input.broken.has('nova.auth_type')) return;
  need('nova.auth_url');
  if (authType === 'password') password(rules, need);
  else if (authType === 'v3applicationcredential') applicationCredential(rules, need);
  else need('nova.token', ['nova.token_file']);
  if (authType !== 'v3applicationcredential' && rules.has('nova.project_name'))
    need('nova.project_domain_name', ['nova.project_domain_id']);
  interfaces(rules);
}

function interfaces(rules: Rules): void {
  const known = ['internal', 'public', 'admin'];
  const wrong = rules.config.nova.validInterfaces.find((name) => !known.includes(name));
  if (wrong !== undefined)
    rules.problem('nova.valid_interfaces', `${JSON.stringify(wrong)} is not an interface`, `Use ${known.join(', ')}.`);
  rules.pair('nova.certfile', 'nova.keyfile');
}

function prometheus(rules: Rules): void {
  rules.oneLogin([
    ['prometheus.bearer_token', 'prometheus.bearer_token_file'],
    ['prometheus.username', 'prometheus.password', 'prometheus.password_file'],
  ]);
  const { auth, headers } = rules.config.prometheus;
  const own = (['bearer_token', 'bearer_token_file', 'username', 'password', 'password_file'] as const).find((option) =>
    rules.has(`prometheus.${option}`),
  );
  if (auth === 'keystone' && own !== undefined)
    rules.problem(
      `prometheus.${own}`,
      'is set beside [prometheus] auth = keystone',
      'Remove it, or set auth = static.',
    );
  // The content of headers_file has not been parsed as an option.
  const parsed = headers === null ? null : parseHeaders(headers.reveal());
  if (parsed !== null && !parsed.ok) rules.problem('prometheus.headers_file', parsed.problem, parsed.remedy);
  const names = Object.keys(headersOption(headers?.reveal() ?? ''));
  if (names.includes('authorization') && own !== undefined)
    rules.problem('prometheus.headers', `sets Authorization beside [prometheus] ${own}`, 'Keep one of them.');
  if (!rules.has('prometheus.password_file')) rules.pair('prometheus.username', 'prometheus.password');
  else if (!rules.has('prometheus.username'))
    rules.problem('prometheus.password_file', 'is set without [prometheus] username', 'Set both, or none.');
  rules.pair('prometheus.client_cert', 'prometheus.client_key');
}

function inventory(rules: Rules): void {
  const { mode, transportUrl } = rules.config.inventory;
  rules.pair('inventory.transport_cert', 'inventory.transport_key');
  if (mode === 'notifications' && !rules.has('inventory.transport_url'))
    rules.problem(
      'inventory.mode',
      'is notifications without [inventory] transport_url',
      'Set transport_url as in nova.conf, or choose another mode.',
    );
  if (transportUrl === null) return;
  const parsed = parseTransportUrl(transportUrl.reveal());
  if (!parsed.ok) rules.problem('inventory.transport_url', parsed.problem, parsed.remedy);
}

function nats(rules: Rules): void {
  rules.oneLogin([
    ['nats.user', 'nats.password', 'nats.password_file'],
    ['nats.nkey_seed_file'],
    ['nats.credentials_file'],
  ]);
  if (!rules.has('nats.password_file')) rules.pair('nats.user', 'nats.password');
  else if (!rules.has('nats.user'))
    rules.problem('nats.password_file', 'is set without [nats] user', 'Set both, or none.');
  rules.pair('nats.tls_cert', 'nats.tls_key');
  if (![1, 3, 5].includes(rules.config.nats.replicas))
    rules.problem(
      'nats.replicas',
      `${rules.config.nats.replicas} copies tolerate no more failures than one less`,
      'Use 1, 3 or 5.',
    );
}

/** The ways in which a part of Kronos logs in to NATS: `user`, an nkey, credentials. */
const LOGINS = {
  ledger: ['nats.user', 'nats.nkey_seed_file', 'nats.credentials_file'],
  console: ['console.nats_user', 'console.nats_nkey_seed_file', 'console.nats_credentials_file'],
  custodian: ['console.custodian_user', 'console.custodian_nkey_seed_file', 'console.custodian_credentials_file'],
} as const;

/** One way to log in at most, and a user with a password. */
function login(rules: Rules, prefix: 'nats' | 'custodian'): void {
  const option = <T extends string>(name: T) => `console.${prefix}_${name}` as const;
  rules.oneLogin([
    [option('user'), option('password'), option('password_file')],
    [option('nkey_seed_file')],
    [option('credentials_file')],
  ]);
  if (!rules.has(option('password_file'))) rules.pair(option('user'), option('password'));
  else if (!rules.has(option('user')))
    rules.problem(option('password_file'), `is set without [console] ${prefix}_user`, 'Set both, or none.');
}

/** The user of `of` must not be the one of `other`. */
function apart(rules: Rules, of: keyof typeof LOGINS, other: keyof typeof LOGINS): void {
  const value = (path: OptionPath): unknown => {
    const [section, option] = split(path);
    return Reflect.get(rules.config[section], camel(option));
  };
  for (const [way, path] of LOGINS[of].entries()) {
    const others = LOGINS[other][way] as OptionPath;
    if (rules.has(path) && value(path) === value(others))
      rules.problem(path, `is the user of the ${other}`, `Use a NATS user of its own (deploy/nats: ${of}).`);
  }
}

function acting(rules: Rules): void {
  const { console: own, ledger } = rules.config;
  login(rules, 'nats');
  login(rules, 'custodian');
  if (!own.acting) return;
  if (!ledger.console)
    rules.problem('console.acting', 'is set, but [ledger] console is false', 'Set both to true, or none.');
  for (const path of ['console.auth_url', 'console.project_name'] as const)
    if (!rules.has(path)) rules.problem(path, 'is not set, and acting needs it', 'Set it, or acting = false.');
  if (own.roles.length === 0)
    rules.problem('console.roles', 'is empty: nobody could give a command', 'Name the roles, or set acting = false.');
  const logsIn = (part: keyof typeof LOGINS) => LOGINS[part].some((path) => rules.has(path));
  if (logsIn('ledger') && !logsIn('console'))
    rules.problem(
      'console.acting',
      'is set without a NATS user for it: the user of the ledger may write no commands',
      'Set nats_user and nats_password_file, nats_nkey_seed_file or nats_credentials_file in [console].',
    );
  if (logsIn('ledger') && own.custodianRoles.length > 0 && !logsIn('custodian'))
    rules.problem(
      'console.custodian_roles',
      'is set without a NATS user for skips: the user of the console may skip no events',
      'Set custodian_user and custodian_password_file, custodian_nkey_seed_file or custodian_credentials_file in [console].',
    );
  apart(rules, 'console', 'ledger');
  apart(rules, 'custodian', 'ledger');
  apart(rules, 'custodian', 'console');
}

function executor(rules: Rules): void {
  const { retryBackoff, retryBackoffMax } = rules.config.executor;
  if (retryBackoffMax < retryBackoff)
    rules.problem('executor.retry_backoff_max', `is less than retry_backoff (${retryBackoff})`, 'Write at least that.');
}

function cells(rules: Rules): void {
  const { config } = rules;
  const scope = scopeOf(config);
  const seen = new Set<string>();
  for (const { aggregate } of config.cells.aggregates) {
    const name = JSON.stringify(aggregate);
    if (seen.has(aggregate)) rules.problem('cells.aggregates', `names ${name} twice`, 'An aggregate is in one cell.');
    else if (!scope.includes(aggregate) && !rules.input.broken.has('engine.aggregates'))
      rules.problem(
        'cells.aggregates',
        `names ${name}, which is not in the scope`,
        'Add it to [engine] aggregates: Kronos observes only the hosts of aggregates in its scope.',
      );
    seen.add(aggregate);
  }
}

/** The rules of `[engine]` for the aggregates that have options of their own; a problem that `[engine]` has is not repeated. */
function aggregates(input: RuleInput): Problem[] {
  return [...input.config.overrides.keys()].flatMap((aggregate) => {
    const prefix = aggregateKey(aggregate, '');
    const own = new Map<string, Source>();
    for (const [key, source] of input.sources)
      if (key.startsWith(prefix)) own.set(`engine.${key.slice(prefix.length)}`, source);
    const broken = new Set([...input.broken].filter((key) => !own.has(key)));
    const sources = new Map([...input.sources, ...own]);
    const rules = new Rules({ ...input, config: aggregateConfig(input.config, aggregate), sources, broken });
    engine(rules);
    const options = new Set([...own.values()].map(({ option }) => option));
    return rules.problems.filter(({ option }) => option !== null && options.has(option));
  });
}

function engine(rules: Rules): void {
  const seconds = rules.config.engine.instanceQuarantineSeconds;
  if (seconds < 0 && seconds !== -1)
    rules.problem('engine.instance_quarantine_seconds', 'is negative and not -1', 'Write -1 for: until released.');
}
