import { wrapped } from '@kronos/contracts/words';
import { z } from 'zod';
import { EVERYONE, type Option, type Reader } from './option.ts';
import { sinkOptions } from './options/sink.ts';
import { commonToAggregates, type SectionName, sectionHelp, sections } from './options.ts';
import { policyFileSchema } from './policies.ts';
import { environmentName } from './source.ts';

const WIDTH = 88;

const comment = (text: string): string[] => wrapped(text, WIDTH - 2).map((line) => `# ${line}`);

/** A default as it would be written in the file; empty where there is none. */
export function defaultText(option: Option<unknown>): string {
  const value = option.default;
  if (value === null) return '';
  if (Array.isArray(value)) return value.join(', ');
  if (option.kind === 'bytes' && typeof value === 'number') return bytesText(value);
  return String(value);
}

function bytesText(bytes: number): string {
  const units = ['TiB', 'GiB', 'MiB', 'KiB'];
  for (const [index, unit] of units.entries()) {
    const size = 1024 ** (units.length - index);
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return String(bytes);
}

const readByText = (by: readonly Reader[]): string => (by.length === EVERYONE.length ? 'all' : by.join(', '));

/** kronos.conf with every option, its meaning and its default: `kronos config sample`. Nothing in it is set. */
export function configSample(): string {
  const lines = [
    ...comment(
      'kronos.conf: every option of Kronos with its default. An option that stays commented out has that default; one without a value is not set. Generated from the table of options: kronos config sample.',
    ),
    '#',
    ...comment(
      'Every option can be set from the environment too, which wins: OS_<SECTION>__<OPTION>, for example OS_ENGINE__EVALUATION_INTERVAL=30. Comments need lines of their own. Durations are seconds.',
    ),
  ];
  for (const [name, section] of sections) {
    lines.push('', '', `[${name}]`, ...comment(sectionHelp[name as SectionName]));
    for (const [optionName, option] of section) {
      lines.push('', ...comment(option.help));
      lines.push(...comment(`(${option.takes}; read by: ${readByText(option.readBy)})`));
      lines.push(`#${optionName} = ${defaultText(option)}`.trimEnd());
    }
    if (name === 'engine') lines.push('', '', ...aggregateSample());
    if (name === 'ledger') lines.push('', '', ...sinkSample());
  }
  return `${lines.join('\n')}\n`;
}

/** The sections `[aggregate:NAME]` in the sample: an example in comments. */
const aggregateSample = (): string[] => [
  ...comment(
    'An aggregate that needs other options than [engine] has its own section, which overrides [engine] and its environment variables. For example:',
  ),
  '#',
  '# [aggregate:gpu]',
  '# policies_file = /etc/kronos/policies-gpu.yaml',
  '# dry_run = true',
  '# cooldown = 3600',
  '#',
  ...comment(`It can set every option of [engine] except ${[...commonToAggregates.keys()].join(', ')}.`),
];

/** The sections `[notify:NAME]` in the sample: examples in comments. */
const sinkSample = (): string[] => [
  ...comment(
    'Notifications to people: any number of sections, each with its own name; run kronos provision after adding one. kronos notify test NAME sends a test message. For example:',
  ),
  '#',
  '# [notify:ops-chat]',
  '# format = slack',
  '# url_file = /etc/kronos/chat-url',
  '# types = alarm.*, migration.failed, host.drained',
  '#',
  '# [notify:alertmanager]',
  '# format = alertmanager',
  '# url = http://alertmanager:9093',
  '#',
  ...comment(`Options: ${Object.keys(sinkOptions).join(', ')}; docs/configuration.md explains them.`),
];

/** A policies.yaml to begin with; every field is explained. `kronos config sample --policies`. */
export function policiesSample(): string {
  const header = [
    ...comment(
      'policies.yaml: what is balanced, by which metrics. Every enabled policy applies to every aggregate that uses this file.',
    ),
    ...comment('The queries are examples for node_exporter and libvirt exporters: put your own in their place.'),
    '',
    'policies:',
  ];
  const policies = [
    {
      name: 'cpu',
      mode: 'spread',
      weight: 0.6,
      imbalance_query: "1 - avg by (host) (rate(node_cpu_seconds_total{mode='idle'}[5m]))",
      vm_profile_query:
        "sum by (host, uuid) (rate(libvirt_domain_info_cpu_time_seconds_total[5m])) / on (host) group_left count by (host) (node_cpu_seconds_total{mode='idle'})",
      vm_profile_label: 'uuid',
      vm_profile_fallback: 'flavor_vcpu_ratio',
      threshold: 0.2,
      max_migrations_per_cycle: 5,
      min_sustained_cycles: 2,
    },
    {
      name: 'memory',
      mode: 'spread',
      weight: 0.4,
      imbalance_query: '1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes',
      vm_profile_query:
        'sum by (host, uuid) (libvirt_domain_memory_stats_rss_bytes) / on (host) group_left node_memory_MemTotal_bytes',
      vm_profile_label: 'uuid',
      threshold: 0.2,
      max_migrations_per_cycle: 5,
    },
  ];
  const body = policies.flatMap((policy, index) => {
    const fields = Object.entries(policyFileSchema.shape).flatMap(([name, schema]) => {
      const value = Object.entries(policy).find(([key]) => key === name)?.[1];
      // The first policy explains every field, the others show only what they set.
      if (index > 0) return value === undefined ? [] : [`${name}: ${yamlText(value)}`];
      const help = comment(schema.meta()?.description ?? '');
      const shown = yamlText(value ?? schema.safeParse(undefined).data);
      return [...help, `${value === undefined ? '# ' : ''}${name}: ${shown}`.trimEnd()];
    });
    const first = fields.findIndex((line) => !line.startsWith('#'));
    return [...fields.map((line, i) => (i === first ? `  - ${line}` : `${i < first ? '  ' : '    '}${line}`)), ''];
  });
  return `${[...header, ...body].join('\n').trimEnd()}\n`;
}

const yamlText = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' && !/^[a-z][a-z0-9_]*$/i.test(value) ? JSON.stringify(value) : String(value);
};

const cell = (text: string): string =>
  text
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;')
    .replaceAll(/(?<!\S)_[a-z]+_(?!\w)/g, (name) => `\`${name}\``);

/** docs/configuration.md */
export function configurationDoc(): string {
  const lines = [
    '# Configuration',
    '',
    'Generated from the options (`libs/config/src/options/`) and the schema of policies by `npm run generate`.',
    '',
    'Kronos reads two files: `/etc/kronos/kronos.conf` and the policies, `/etc/kronos/policies.yaml`. `kronos config sample`',
    'prints the first one with every option; `kronos config check` checks both, then everything they name. A service that',
    'finds a mistake refuses to start and names every one with its file, line and remedy.',
    '',
    '## The form of kronos.conf',
    '',
    '* The INI of oslo.config: `[section]`, `option = value` or `option: value`, comments with `#` or `;` on lines of their own,',
    '  lists with commas, values that continue on indented lines.',
    '* Unknown sections and options are errors, and so is an option that is given twice.',
    '* `$name` is not substituted: a `$` is a `$`.',
    '* Durations are plain seconds. Sizes are bytes, or `512MiB`, `10GiB`.',
    '* An empty value means that the option is not set; where an option must have a value it is an error.',
    `* From the environment: \`OS_<SECTION>__<OPTION>\` in capitals, e.g. \`${environmentName('engine', 'evaluation_interval')}=30\`. It wins over the file.`,
    '* Secrets can be in files, which options such as `password_file` name. They are read at the start. No secret is ever logged.',
    '* `{service}` in some options of `[nats]` and `[telemetry]` stands for the name of the service, so that one file serves all',
    '  of them although each has its own NATS user.',
    '',
    '"Read by" names the services that read the option. A service does not need the options that it does not read.',
    '"All" are the four services, `kronos provision` (`provision`) and the other commands (`cli`).',
  ];
  for (const [name, section] of sections) {
    lines.push('', `## [${name}]`, '', sectionHelp[name as SectionName], '');
    lines.push('| option | takes | default | read by | meaning |', '|---|---|---|---|---|');
    for (const [optionName, option] of section) {
      const shown = defaultText(option);
      lines.push(
        `| \`${optionName}\` | ${cell(option.takes)} | ${shown === '' ? '' : `\`${shown}\``} | ${readByText(option.readBy)} | ${cell(option.help)} |`,
      );
    }
    if (name === 'engine') lines.push('', ...aggregateDoc());
    if (name === 'ledger') lines.push('', ...sinkDoc());
  }
  lines.push(
    '',
    '## policies.yaml',
    '',
    'One field, `policies`, with a list. Every enabled policy applies to every aggregate that uses the file: all in scope, unless',
    '`[aggregate:NAME]` names another file. All policies of a file have the same mode; aggregates with different files may have',
    'different modes. At least one policy is enabled, unless `balance` is false.',
    '',
    '| field | takes | default | meaning |',
    '|---|---|---|---|',
  );
  for (const [name, schema] of Object.entries(policyFileSchema.shape)) {
    const fallback = schema.safeParse(undefined);
    const shown = !fallback.success ? 'required' : fallback.data === null ? '' : `\`${String(fallback.data)}\``;
    lines.push(`| \`${name}\` | ${policyTakes(schema)} | ${shown} | ${cell(schema.meta()?.description ?? '')} |`);
  }
  return `${lines.join('\n')}\n`;
}

/** The sections `[aggregate:NAME]` in docs/configuration.md. */
const aggregateDoc = (): string[] => [
  '## [aggregate:NAME]',
  '',
  'Options of `[engine]` that differ for one aggregate. `NAME` is the name of the aggregate, or `_unassigned_` for the pool; it',
  'must be in scope.',
  '',
  '```ini',
  '[engine]',
  'aggregates = general, gpu',
  'dry_run = false',
  '',
  '[aggregate:gpu]',
  'policies_file = /etc/kronos/policies-gpu.yaml',
  'dry_run = true',
  'cooldown = 3600',
  '```',
  '',
  '* The section wins over `[engine]`, also over its environment variables: with the file above, `OS_ENGINE__DRY_RUN=false`',
  '  leaves `gpu` in dry run. The environment cannot set options of one aggregate.',
  '* The planner writes the options of each aggregate to the event log, and a replay uses them.',
  '* These options are the same for every aggregate:',
  ...[...commonToAggregates].map(([option, reason]) => `  * \`${option}\`: ${reason}`),
];

/** The sections `[notify:NAME]` in docs/configuration.md. */
const sinkDoc = (): string[] => [
  '## [notify:NAME]',
  '',
  "A receiver of notifications: a person's chat, an Alertmanager, a program. `NAME` has letters, digits, `-` and `_`. Run `kronos provision`",
  'after adding one, and `kronos notify test NAME`. The environment cannot set these options. See [Notifications](notifications.md).',
  '',
  '| option | takes | default | meaning |',
  '|---|---|---|---|',
  ...Object.entries(sinkOptions).map(([name, option]) => {
    const shown = defaultText(option);
    return `| \`${name}\` | ${cell(option.takes)} | ${shown === '' ? '' : `\`${shown}\``} | ${cell(option.help)} |`;
  }),
];

/** The valid values of a policy's field, from its schema. */
function policyTakes(schema: z.ZodType): string {
  const { type, enum: values, anyOf, pattern } = z.toJSONSchema(schema, { io: 'input' });
  if (values !== undefined) return values.join(' or ');
  if (anyOf !== undefined) return policyTakesType(anyOf[0]?.type);
  return pattern === undefined ? policyTakesType(type) : 'a name';
}

function policyTakesType(type: unknown): string {
  const words: Record<string, string> = {
    string: 'text',
    number: 'a number',
    integer: 'a whole number',
    boolean: 'true or false',
  };
  return typeof type === 'string' ? (words[type] ?? type) : '';
}

/** Every file that is generated from the table, by its path in the repository. A test keeps them equal to this. */
export function configurationFiles(): Map<string, string> {
  return new Map([
    ['docs/configuration.md', configurationDoc()],
    ['deploy/etc/kronos.conf.sample', configSample()],
    ['deploy/etc/policies.yaml.sample', policiesSample()],
  ]);
}
