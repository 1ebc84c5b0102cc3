import { inspect } from 'node:util';
import { defaultEngineOptions, defaultStorageLimits, taskConsumer } from '@kronos/contracts';
import fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { engineFields, engineOptions, engineOverrides, storageLimits } from './engine.ts';
import { ConfigError, renderProblem } from './errors.ts';
import { type Config, camel, sections } from './options.ts';
import { defaultConfig, resolveConfig } from './resolve.ts';
import { defaultText } from './sample.ts';
import type { Secret } from './secret.ts';
import { knownSecrets } from './secret.ts';
import { environmentName, type Role } from './source.ts';

interface Given {
  readonly text?: string;
  readonly env?: Record<string, string>;
  readonly role?: Role;
  readonly files?: Record<string, string>;
}

const resolve = ({ text = '', env = {}, role = 'planner', files = {} }: Given) =>
  resolveConfig({
    file: 'kronos.conf',
    text,
    env,
    role,
    readFile: (path) => {
      const content = files[path];
      if (content === undefined) throw Object.assign(new Error(`no ${path}`), { code: 'ENOENT' });
      return content;
    },
  });

/** The configuration, which must be right. */
const config = (given: Given): Config => {
  const { config: value, problems } = resolve(given);
  expect(problems.map(renderProblem)).toEqual([]);
  return value;
};

const told = (given: Given): string[] =>
  resolve(given).problems.map(
    (p) => `${p.file}${p.line === null ? '' : `:${p.line}`} ${p.option}: ${p.problem} | ${p.remedy}`,
  );

const SCOPE = '[engine]\naggregates = gpu\n';
const CLOUD = '[nova]\ncloud = prod\n';
const PROMETHEUS = '[prometheus]\nurl = http://prom:9090\n';

describe('the table of options', () => {
  const all = [...sections].flatMap(([section, known]) =>
    [...known].map(([name, option]) => ({ section, name, option })),
  );

  it.each(all)(
    '[$section] $name: its default is a value that it takes, and its help is a sentence',
    ({ name, option }) => {
      if (option.default !== null)
        expect(option.parse(defaultText(option))).toEqual({ ok: true, value: option.default });
      expect(option.help).toMatch(/^[A-Z0-9*{a-z].*[.]$/s);
      expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
      expect(option.readBy.length).toBeGreaterThan(0);
    },
  );

  it('gives each option a camelCase name of its own', () => {
    for (const known of sections.values()) expect(new Set([...known.keys()].map(camel)).size).toBe(known.size);
  });

  it('has a secret option for every file of a secret', () => {
    for (const { section, option } of all)
      if (option.fills !== null) expect(sections.get(section)?.get(option.fills)?.kind).toBe('secret');
  });

  it('has the defaults that the contracts state', () => {
    expect(engineOptions(defaultConfig, 'gpu')).toEqual(defaultEngineOptions);
    expect(storageLimits(defaultConfig)).toEqual(defaultStorageLimits);
    expect(defaultConfig.nats.ackWait).toBe(taskConsumer.ackWaitSeconds);
  });

  it('covers every field of the engine options with an option that the planner reads', () => {
    for (const path of Object.values(engineFields)) {
      const [section = '', name = ''] = path.split('.');
      expect(sections.get(section)?.get(name)?.readBy).toContain('planner');
    }
  });
});

describe('kronos.conf', () => {
  it('is complete when it names a scope; everything else has a default', () => {
    const { engine, http } = config({ text: SCOPE });
    expect(engine).toMatchObject({
      aggregates: ['gpu'],
      evaluationInterval: 60,
      dryRun: true,
      includeUnassignedHosts: false,
    });
    expect(http).toMatchObject({ address: '127.0.0.1', plannerPort: 9782 });
  });

  it('gives each option the type of its kind', () => {
    const text = `${SCOPE}dry_run = no\nmin_gain = 0.05\n[nats]\nservers = nats://a:4222, tls://b:4222\nlog_max_bytes = 1GiB\n[log]\nformat = json\n`;
    const { engine, nats, log } = config({ text });
    expect([engine.dryRun, engine.minGain, nats.servers, nats.logMaxBytes, log.format]).toEqual([
      false,
      0.05,
      ['nats://a:4222', 'tls://b:4222'],
      1024 ** 3,
      'json',
    ]);
  });

  it('has its types from the table', () => {
    expectTypeOf<Config['engine']['approval']>().toEqualTypeOf<'auto' | 'manual'>();
    expectTypeOf<Config['engine']['aggregates']>().toEqualTypeOf<readonly string[]>();
    expectTypeOf<Config['engine']['evaluationInterval']>().toEqualTypeOf<number>();
    expectTypeOf<Config['nova']['authUrl']>().toEqualTypeOf<string | null>();
    expectTypeOf<Config['nova']['applicationCredentialSecret']>().toEqualTypeOf<Secret | null>();
  });

  it('cannot be changed once it is read', () => {
    const { engine } = config({ text: SCOPE });
    expect(() => Object.assign(engine, { dryRun: false })).toThrow(TypeError);
  });

  it('reports every problem at once, in the order of the file', () => {
    const text =
      '[engine]\ncooldwon = 1\nbalance = treu\ndry_run = \n[enigne]\nx = 1\n[log]\ncooldown = 5\nweather = 1\nlevel = loud\n';
    expect(told({ text })).toEqual([
      'kronos.conf:2 [engine] cooldwon: is not an option of Kronos | Did you mean cooldown?',
      'kronos.conf:3 [engine] balance: "treu" is neither true nor false | Write true or false.',
      'kronos.conf:4 [engine] dry_run: is empty | Write true or false, or take the line away for the default.',
      'kronos.conf:5 [enigne]: is not a section of Kronos | Did you mean [engine]?',
      'kronos.conf:8 [log] cooldown: is not an option of Kronos | It belongs in [engine].',
      'kronos.conf:9 [log] weather: is not an option of Kronos | See kronos config sample for all options.',
      'kronos.conf:10 [log] level: "loud" is not one of its values | Write one of trace, debug, info, warn, error, fatal, silent.',
      'kronos.conf [engine] aggregates: is empty and include_unassigned_hosts is false: there is nothing to balance | Name Nova host aggregates in aggregates, or set include_unassigned_hosts = true, or both.',
    ]);
  });

  it('takes an empty value of an option without a default as not set', () => {
    expect(config({ text: `${SCOPE}[nats]\nuser =\n` }).nats.user).toBeNull();
  });

  it('renders as text that needs nothing else', () => {
    const error = new ConfigError(resolve({ text: '[engine]\naggregates = gpu\ncooldown = 10m\n' }).problems);
    expect(error.code).toBe('KRONOS_CONFIG');
    expect(error.message).toBe(
      'the configuration has 1 problem:\n\n  kronos.conf:3: [engine] cooldown: "10m" has a unit, and durations are plain seconds\n    Write 600.',
    );
  });
});

describe('the environment', () => {
  it('wins over the file, by the names of oslo.config', () => {
    const env = { OS_ENGINE__EVALUATION_INTERVAL: '30', OS_ENGINE__AGGREGATES: 'a,b' };
    const { engine } = config({ text: `${SCOPE}evaluation_interval = 90\n`, env });
    expect([engine.evaluationInterval, engine.aggregates]).toEqual([30, ['a', 'b']]);
  });

  it('is refused with the nearest name when a section of ours has no such option', () => {
    expect(
      told({
        text: SCOPE,
        env: { OS_ENGINE__EVALUATION_INTERVALL: '30', OS_engine__dry_run: '0', OS_LOG__LEVEL: 'loud' },
      }),
    ).toEqual([
      'environment OS_ENGINE__EVALUATION_INTERVALL: is not an option of [engine] | Did you mean OS_ENGINE__EVALUATION_INTERVAL?',
      'environment OS_engine__dry_run: is not written in capitals | Write OS_ENGINE__DRY_RUN.',
      'environment OS_LOG__LEVEL: "loud" is not one of its values | Write one of trace, debug, info, warn, error, fatal, silent.',
    ]);
  });

  it('is left alone where it is not ours', () => {
    const env = { OS_USERNAME: 'x', OS_KEYSTONE__X: '1', OS_CLOUD: 'y', PATH: '/bin', OS__X: '1' };
    expect(config({ text: SCOPE, env })).toEqual(config({ text: SCOPE }));
  });

  it('reaches every option', () => {
    const names = [...sections].flatMap(([section, known]) =>
      [...known.keys()].map((name) => environmentName(section, name)),
    );
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^OS_[A-Z]+__[A-Z0-9_]+$/);
  });
});

describe('the scope', () => {
  it('needs aggregates or the unassigned pool', () => {
    config({ text: '[engine]\ninclude_unassigned_hosts = true\n' });
    config({ text: '[engine]\ninclude_unassigned_hosts = true\naggregates = gpu\n' });
    for (const role of ['scorer', 'planner', 'executor', 'ledger', 'provision', 'cli', 'check'] as const) {
      const first = told({ text: `${CLOUD}${PROMETHEUS}`, role }).join();
      expect(first).toContain('[engine] aggregates');
      expect(first).toContain('include_unassigned_hosts');
    }
  });

  it('refuses the names that Kronos uses itself, and a name that is there twice', () => {
    expect(told({ text: '[engine]\naggregates = _unassigned_, _all_, gpu, gpu\n' })).toEqual([
      'kronos.conf:2 [engine] aggregates: names "gpu" twice | Name it once.',
      "kronos.conf:2 [engine] aggregates: names _unassigned_, which is a name of Kronos's own | Rename the aggregate, or leave it out. For the pool of unassigned hosts set include_unassigned_hosts = true.",
      "kronos.conf:2 [engine] aggregates: names _all_, which is a name of Kronos's own | Rename the aggregate, or leave it out.",
    ]);
  });
});

describe('secrets', () => {
  it('come from files, for those who read them', () => {
    const text = `${SCOPE}${PROMETHEUS}bearer_token_file = /t\n${CLOUD}`;
    expect(config({ text, role: 'scorer', files: { '/t': ' hunter2\n' } }).prometheus.bearerToken?.reveal()).toBe(
      'hunter2',
    );
    expect(config({ text, role: 'planner' }).prometheus.bearerToken).toBeNull();
  });

  it('are refused when they are given twice, when the file is empty and when it cannot be read', () => {
    const text = `${SCOPE}${CLOUD}${PROMETHEUS}username = u\npassword = hunter2\npassword_file = /p\n[nats]\nuser = k\npassword_file = /none\n`;
    expect(told({ text, role: 'scorer' })).toEqual([
      'kronos.conf:9 [prometheus] password_file: and [prometheus] password (line 8) are both set | Keep one of the two.',
      'kronos.conf:12 [nats] password_file: names the file /none, which cannot be read: there is no such file | Create it, or let this service read it.',
    ]);
    expect(told({ text: `${SCOPE}[nats]\nuser = k\npassword_file = /empty\n`, files: { '/empty': '\n' } })).toEqual([
      'kronos.conf:5 [nats] password_file: names the file /empty, which is empty | Write password into it.',
    ]);
  });

  it('are in no error and in no form in which the configuration can be shown', () => {
    const secretOptions = [...sections].flatMap(([section, known]) =>
      [...known].filter(([, option]) => option.kind === 'secret').map(([name]) => `${section}.${name}`),
    );
    const anyOption = [...sections].flatMap(([section, known]) =>
      [...known.keys()].map((name) => `${section}.${name}`),
    );
    const secret = fc.stringMatching(/^hunter2-[A-Za-z0-9$%@:/,'" #=]{0,20}x$/);
    const line = fc.oneof(
      fc.record({ path: fc.constantFrom(...secretOptions), suffix: fc.constantFrom('', '', 'x') }),
      fc.record({ path: fc.constantFrom(...secretOptions).map((p) => `nowhere.${p}`), suffix: fc.constant('') }),
    );
    const other = fc.record({
      path: fc.constantFrom(...anyOption.filter((o) => !secretOptions.includes(o))),
      value: fc.string({ maxLength: 8 }),
    });
    fc.assert(
      fc.property(
        secret,
        fc.array(line),
        fc.array(other),
        fc.boolean(),
        fc.constantFrom<Role>('check', 'scorer', 'ledger'),
        (value, lines, others, inEnv, role) => {
          const env: Record<string, string> = {};
          let text = `stray ${value}\n`;
          for (const { path, suffix } of lines) {
            const [section = '', name = ''] = path.split('.').slice(-2);
            if (inEnv) env[environmentName(section, name + suffix)] = value;
            else text += `[${section}]\n${name}${suffix} = ${value}\n  ${value}\n`;
          }
          for (const { path, value: noise } of others) {
            const [section = '', name = ''] = path.split('.');
            text += `[${section}]\n${name} = ${noise.replaceAll('\n', '')}\n`;
          }
          text += `[nats]\nservers = nats://u:${value}@h\n  nats://u:${value}@h2\n[prometheus]\nurl = http://${value}@h\n[nova]\npassword_file = /s\n`;
          const { config: shown, problems } = resolve({ text, env, role, files: { '/s': value } });
          const error = new ConfigError(problems);
          const texts = [
            error.message,
            error.stack ?? '',
            JSON.stringify(problems),
            JSON.stringify(shown),
            inspect(shown, { depth: 9, showHidden: true }),
          ];
          for (const t of texts) expect(t).not.toContain(value.slice(0, 7));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('is known from then on, to be hidden in whatever is written, also where other options are wrong', () => {
    resolveConfig({
      file: 'f',
      text: '[nats]\nuser = k\npassword = hunter2-known\n[x]\n',
      env: {},
      role: 'cli',
      readFile: () => '',
    });
    expect([...knownSecrets().values]).toContain('hunter2-known');
  });
});

describe('how the cloud is reached', () => {
  const password =
    'auth_url = http://k:5000\nusername = u\npassword = p\nuser_domain_name = Default\nproject_name = service\nproject_domain_name = Default\n';
  const nova = (options_: string, role: Role = 'executor') => told({ text: `${SCOPE}[nova]\n${options_}`, role });

  it.each([
    ['a cloud of clouds.yaml', 'cloud = prod\nclouds_file = /c\n'],
    ['a password', password],
    ['a password, by ids', 'auth_url = http://k\nuser_id = u\npassword = p\nproject_id = s\n'],
    [
      'an application credential',
      'auth_type = v3applicationcredential\nauth_url = http://k\napplication_credential_id = i\napplication_credential_secret = s\n',
    ],
    [
      'an application credential, by name',
      'auth_type = v3applicationcredential\nauth_url = http://k\napplication_credential_name = n\nusername = u\nuser_domain_id = d\napplication_credential_secret = s\n',
    ],
    ['a token', 'auth_type = v3token\nauth_url = http://k\ntoken = t\n'],
  ])('takes %s', (_, text) => {
    expect(nova(text)).toEqual([]);
  });

  it.each([
    ['', ['[nova] cloud: is not set, and neither is auth_url: the cloud cannot be reached']],
    [
      'auth_url = http://k\nusername = u\n',
      [
        '[nova] password: is not set, and auth_type=password needs it',
        '[nova] user_domain_name: is not set, and auth_type=password needs it',
        '[nova] project_name: is not set, and auth_type=password needs it',
      ],
    ],
    ['auth_type = v3token\nauth_url = http://k\n', ['[nova] token: is not set, and auth_type=v3token needs it']],
    [
      'auth_type = v3applicationcredential\nauth_url = http://k\napplication_credential_name = n\nproject_name = p\n',
      [
        '[nova] application_credential_secret: is not set, and auth_type=v3applicationcredential needs it',
        '[nova] username: is not set, and auth_type=v3applicationcredential needs it',
        '[nova] project_name: is set, and an application credential has its project already',
      ],
    ],
    ['cloud = prod\nusername = u\n', ['[nova] username: is set beside [nova] cloud']],
    ['cloud = prod\nauth_type = password\n', ['[nova] auth_type: is set beside [nova] cloud']],
    [`clouds_file = /c\n${password}`, ['[nova] clouds_file: is set without [nova] cloud']],
    [`certfile = /c\n${password}`, ['[nova] certfile: is set without [nova] keyfile']],
    [`valid_interfaces = internal, pubilc\n${password}`, ['[nova] valid_interfaces: "pubilc" is not an interface']],
  ])('refuses %j', (text, expected) => {
    const problems = nova(text);
    expect(problems).toHaveLength(expected.length);
    for (const part of expected) expect(problems.join('\n')).toContain(part);
  });

  it('is no concern of those who do not call OpenStack', () => {
    expect(nova('', 'planner')).toEqual([]);
    expect(nova('', 'ledger')).toEqual([]);
  });

  it('says nothing more about an option whose value is wrong', () => {
    expect(nova('auth_url = nonsense\nuser_id = u\npassword = p\nproject_id = p\n')).toEqual([
      'kronos.conf:4 [nova] auth_url: is not a URL | Write it as http://HOST:PORT or https://HOST:PORT.',
    ]);
  });
});

describe('rules over several options', () => {
  const scorer = (text: string) => told({ text: `${SCOPE}${CLOUD}${text}`, role: 'scorer' });

  it.each([
    [
      `${PROMETHEUS}bearer_token = t\nusername = u\npassword = p\n`,
      '[prometheus] username: is set beside [prometheus] bearer_token',
    ],
    [`${PROMETHEUS}username = u\n`, '[prometheus] username: is set without [prometheus] password'],
    [`${PROMETHEUS}client_cert = /c\n`, '[prometheus] client_cert: is set without [prometheus] client_key'],
    [
      `${PROMETHEUS}[nats]\nuser = u\npassword = p\ncredentials_file = /c\n`,
      '[nats] credentials_file: is set beside [nats] user',
    ],
    [`${PROMETHEUS}[nats]\npassword = p\n`, '[nats] password: is set without [nats] user'],
    [
      `${PROMETHEUS}[inventory]\nmode = notifications\n`,
      '[inventory] mode: is notifications without [inventory] transport_url',
    ],
    [
      `${PROMETHEUS}[inventory]\ntransport_url = http://one/\n`,
      '[inventory] transport_url: is not of the form rabbit://',
    ],
    [
      `${PROMETHEUS}[inventory]\ntransport_key = /k\n`,
      '[inventory] transport_key: is set without [inventory] transport_cert',
    ],
    [`${PROMETHEUS}[nats]\ntls_key = /k\n`, '[nats] tls_key: is set without [nats] tls_cert'],
    [`${PROMETHEUS}[nats]\nreplicas = 2\n`, '[nats] replicas: 2 copies tolerate no more failures than one less'],
    [`${PROMETHEUS}[nats]\nservers = nats://u:p@h\n`, '[nats] servers: holds a user or a password'],
    [
      `${PROMETHEUS}[executor]\nretry_backoff = 60\nretry_backoff_max = 10\n`,
      '[executor] retry_backoff_max: is less than retry_backoff (60)',
    ],
    [
      `${PROMETHEUS}[cells]\naggregates = c1:elsewhere\n`,
      '[cells] aggregates: names "elsewhere", which is not in the scope',
    ],
    [`${PROMETHEUS}[cells]\nverify = icmp\n`, '[cells] verify: "icmp" is not a check'],
    [
      `${PROMETHEUS}[engine]\ninstance_quarantine_seconds = -0.5\n`,
      '[engine] instance_quarantine_seconds: is negative and not -1',
    ],
  ])('refuses %j', (text, expected) => {
    const problems = scorer(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
  });
});

describe('acting in the console', () => {
  const KEYSTONE = 'auth_url = https://keystone:5000/v3\nproject_name = cloud\n';
  const acting = (more: string, nats = '') =>
    told({ text: `${SCOPE}${nats === '' ? '' : `[nats]\n${nats}`}[console]\nacting = true\n${more}`, role: 'ledger' });

  it('is off, and then nothing of it is needed', () => {
    expect(config({ text: SCOPE, role: 'ledger' }).console).toMatchObject({
      acting: false,
      roles: ['kronos_operator'],
    });
  });

  it('needs Keystone, a project, roles, and a NATS user that is not the one of the ledger', () => {
    const ledger = 'nkey_seed_file = /{service}.nk\n';
    expect(acting(KEYSTONE)).toEqual([]);
    expect(acting(`${KEYSTONE}nats_nkey_seed_file = /console.nk\n`, ledger)).toEqual([]);
    const skips = 'custodian_roles = custodian\ncustodian_nkey_seed_file = /custodian.nk\n';
    expect(acting(`${KEYSTONE}nats_nkey_seed_file = /console.nk\n${skips}`, ledger)).toEqual([]);
    for (const [more, nats, said] of [
      ['', '', '[console] auth_url: is not set'],
      ['auth_url = https://keystone:5000\n', '', '[console] project_name: is not set'],
      [`${KEYSTONE}roles =\n`, '', '[console] roles: is empty'],
      [`${KEYSTONE}[ledger]\nconsole = false\n`, '', '[console] acting: is set, but [ledger] console is false'],
      [KEYSTONE, ledger, '[console] acting: is set without a NATS user for it'],
      [`${KEYSTONE}nats_nkey_seed_file = /ledger.nk\n`, ledger, 'nats_nkey_seed_file: is the user of the ledger'],
      [`${KEYSTONE}nats_user = console\n`, '', '[console] nats_user: is set without [console] nats_password'],
      [
        `${KEYSTONE}nats_nkey_seed_file = /console.nk\ncustodian_roles = custodian\n`,
        ledger,
        '[console] custodian_roles: is set without a NATS user for skips',
      ],
      [
        `${KEYSTONE}nats_nkey_seed_file = /console.nk\ncustodian_nkey_seed_file = /console.nk\n`,
        ledger,
        '[console] custodian_nkey_seed_file: is the user of the console',
      ],
      [`${KEYSTONE}custodian_password = x\n`, '', 'custodian_password: is set without [console] custodian_user'],
    ] as const)
      expect(acting(more, nats).join(), more).toContain(said);
  });
});

describe('the regions of the console', () => {
  const regions = (line: string) => told({ text: `${SCOPE}[console]\nregions = ${line}\n`, role: 'ledger' });

  it.each([
    ['west=https://kronos.west.example.org, south = http://10.0.0.1:9784', []],
    ['https://kronos.west.example.org', [expect.stringContaining('is no region | Write it as NAME=URL')]],
    ['west=kronos.west.example.org', [expect.stringContaining('[console] regions: is not a URL')]],
    [
      `https://ada:${'long-'.repeat(12)}password@kronos.west.example.org`,
      [expect.stringContaining('regions: "kronos.west.example.org" is no region')],
    ],
  ])('%s', (line, problems) => {
    expect(regions(line)).toEqual(problems);
  });
});

describe('the cells of aggregates', () => {
  const told = (line: string) =>
    resolve({ text: `[engine]\naggregates = old, new, third floor\n[cells]\naggregates = ${line}\n`, role: 'cli' });

  it('are taken, any number of aggregates to a cell', () => {
    const { config, problems } = told('c1:old, c2:new, c2: third floor');
    expect(problems).toEqual([]);
    expect(config.cells.aggregates).toEqual([
      { cell: 'c1', aggregate: 'old' },
      { cell: 'c2', aggregate: 'new' },
      { cell: 'c2', aggregate: 'third floor' },
    ]);
  });

  it('are refused where an aggregate is in two of them', () => {
    expect(told('c1:old, c2:old').problems).toMatchObject([{ problem: 'names "old" twice' }]);
  });

  it('are none unless they are set: moves between cells are off', () => {
    expect(told('').config.cells.aggregates).toEqual([]);
  });
});

describe('{service}', () => {
  it('stands for the name of the service, so that one file serves all of them', () => {
    const text = `${SCOPE}[nats]\nnkey_seed_file = /etc/kronos/nats/{service}.nk\n`;
    expect(config({ text, role: 'planner' }).nats.nkeySeedFile).toBe('/etc/kronos/nats/planner.nk');
    expect(config({ text, role: 'ledger' }).nats.nkeySeedFile).toBe('/etc/kronos/nats/ledger.nk');
    expect(config({ text, role: 'ledger' }).telemetry.serviceName).toBe('kronos-ledger');
  });
});

describe('a what-if', () => {
  it('sets an option that decisions read, by its name in the file', () => {
    const changed = engineOverrides(['engine.cooldown=0']);
    expect(changed).toEqual({ ok: true, options: { cooldownSeconds: 0 } });
    expect(engineOverrides(['executor.breaker_failures=9'])).toMatchObject({
      ok: true,
      options: { breakerFailures: 9 },
    });
  });

  it('refuses what decisions do not read, and wrong values', () => {
    expect(engineOverrides(['nats.user=x'])).toMatchObject({
      ok: false,
      problem: 'nats.user is not an option that decisions read',
    });
    expect(engineOverrides(['cooldown=0'])).toMatchObject({
      ok: false,
      remedy: 'Did you mean engine.cooldown?',
    });
    expect(engineOverrides(['engine.cooldown=-1'])).toMatchObject({
      ok: false,
      problem: 'engine.cooldown: -1 is less than 0',
    });
    expect(engineOverrides(['engine.cooldown=0', '=0'])).toMatchObject({
      ok: false,
      problem: '"=0" is not OPTION=VALUE',
    });
  });
});

describe('windows and blackouts', () => {
  const SCOPE = '[engine]\naggregates = gpu, web\n';

  it('go into the options of a decision, the time zone with its changes', () => {
    const text = `${SCOPE}timezone = Europe/Berlin\nwindows = Mon-Fri 22:00-06:00, Sat-Sun 00:00-24:00\nblackouts = 2026-12-24/2027-01-02\n[aggregate:web]\nwindows =\ntimezone = UTC\n`;
    const resolved = resolve({ text }).config;
    const gpu = engineOptions(resolved, 'gpu');
    expect(gpu).toMatchObject({
      windows: ['Mon-Fri 22:00-06:00', 'Sat-Sun 00:00-24:00'],
      blackouts: ['2026-12-24/2027-01-02'],
      timezone: { name: 'Europe/Berlin' },
      evacuationIgnoresWindows: false,
    });
    expect(gpu.timezone?.since).toContain(Date.parse('2026-10-25T01:00:00Z') / 1000);
    expect(engineOptions(resolved, 'web')).toMatchObject({
      windows: [],
      timezone: { name: 'UTC', since: [], offsetSeconds: [] },
    });
  });

  it.each([
    ['windows = Mon-Fry 22:00-06:00', '[engine] windows: "Mon-Fry 22:00-06:00": "Fry" is not a day | Write Mon, Tue'],
    ['windows = 22-6', '[engine] windows: "22-6" is not a window | Write days and times'],
    ['blackouts = 2026-12-24, 24.12.2027', '[engine] blackouts: "24.12.2027" is not a blackout | Write a date'],
    [
      'timezone = Europe/Berln',
      '[engine] timezone: "Europe/Berln" is not a time zone | Write a name such as UTC or Europe/Berlin',
    ],
  ])('refuses %j', (line, expected) => {
    const { problems } = resolve({ text: `${SCOPE}${line}\n` });
    expect(problems.map(({ option, problem, remedy }) => `${option}: ${problem} | ${remedy}`)).toContainEqual(
      expect.stringContaining(expected),
    );
  });

  it('can be set for a what-if', () => {
    expect(engineOverrides(['engine.timezone=Asia/Kolkata'])).toMatchObject({
      ok: true,
      options: { timezone: { name: 'Asia/Kolkata', offsetSeconds: [19_800] } },
    });
    expect(engineOverrides(['engine.windows=later'])).toMatchObject({
      ok: false,
      problem: expect.stringContaining('"later" is not a window'),
    });
  });
});
