import type { Policy } from '@kronos/contracts';
import { UNASSIGNED } from '@kronos/contracts/names';
import { configError, type LoadInput, readConf, readerOf, unreadableFile } from './conf.ts';
import { DEFAULT_CONFIG_FILE } from './defaultFile.ts';
import type { Problem } from './errors.ts';
import { type HostCells, parseHostCells } from './hostCells.ts';
import type { Reader } from './option.ts';
import { type Config, sections } from './options.ts';
import { aggregateKey } from './overrides.ts';
import { parsePolicies } from './policies.ts';
import { aggregateConfig, scopeOf } from './scope.ts';
import type { Role, Source } from './source.ts';

export type { LoadInput } from './conf.ts';
export { DEFAULT_CONFIG_FILE } from './defaultFile.ts';

export interface Loaded {
  readonly config: Config;
  /** The policies of an aggregate. None for those who do not read them, and with `balance = false`. */
  readonly policiesOf: (aggregate: string) => readonly Policy[];
  /** The NUMA cells of the hosts, from the file of `[nova] host_topology`; null: from the exporter. */
  readonly hostCells: readonly HostCells[] | null;
  /** Where each option that is set was set, by `section.option`. */
  readonly sources: ReadonlyMap<string, Source>;
  /** Former names of options: this version accepts them, and a later one will not. */
  readonly warnings: readonly Problem[];
}

/**
 * Reads and checks kronos.conf, the environment, secret files and, for those who read them, the policies.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadConfig(input: LoadInput): Loaded {
  const read = readConf(input);
  const { config, sources, warnings, problems: found } = read;
  const problems = [...found];
  const policies = loadPolicies(config, input, sources, problems);
  const policiesOf = (aggregate: string): readonly Policy[] => policies.get(aggregate) ?? [];
  const hostCells = loadHostCells(config, input, sources, problems);
  const reported = found.some(({ option }) => option === '[prometheus] url' || option === 'OS_PROMETHEUS__URL');
  if (!reported && needsPrometheus(config, input.role, policiesOf))
    problems.push({
      file: input.file ?? DEFAULT_CONFIG_FILE,
      line: null,
      option: '[prometheus] url',
      problem: 'is not set',
      remedy:
        'Set it, or balance by allocations (source: allocation in policies.yaml), or set [engine] balance = false.',
    });
  if (problems.length > 0) throw configError(read, problems);
  return { config, policiesOf, hostCells, sources, warnings };
}

/** Who does not read the file has no cells: they use those of the snapshots. */
function loadHostCells(
  config: Config,
  input: LoadInput,
  sources: ReadonlyMap<string, Source>,
  problems: Problem[],
): readonly HostCells[] | null {
  const file = config.nova.hostTopology;
  if (file === 'auto' || (input.role !== 'check' && input.role !== 'scorer')) return null;
  let text: string;
  try {
    text = readerOf(input)(file);
  } catch (error) {
    problems.push(unreadableFile(file, sources.get('nova.host_topology') ?? null, error));
    return null;
  }
  const parsed = parseHostCells({ file, text });
  problems.push(...parsed.problems);
  return parsed.hosts;
}

/** By aggregate. A file that several aggregates use is read once, and is the same list for all of them. */
function loadPolicies(
  config: Config,
  input: LoadInput,
  sources: ReadonlyMap<string, Source>,
  problems: Problem[],
): ReadonlyMap<string, readonly Policy[]> {
  const found = new Map<string, readonly Policy[]>();
  if (input.role !== 'check' && !readsPolicies(input.role)) return found;
  const read = new Map<string, readonly Policy[]>();
  for (const aggregate of inScope(config)) {
    const { balance, policiesFile: file } = aggregateConfig(config, aggregate).engine;
    if (!balance) continue;
    const policies = read.get(file) ?? readPolicies(file, aggregate);
    read.set(file, policies);
    found.set(aggregate, policies);
  }
  return found;

  function readPolicies(file: string, aggregate: string): readonly Policy[] {
    let text: string;
    try {
      text = readerOf(input)(file);
    } catch (error) {
      const source = sources.get(aggregateKey(aggregate, 'policies_file')) ?? sources.get('engine.policies_file');
      problems.push(unreadableFile(file, source ?? null, error));
      return [];
    }
    const parsed = parsePolicies({ file, text });
    problems.push(...parsed.problems);
    return parsed.policies;
  }
}

/** The aggregates in scope. Where there is none, which is a problem of its own, `[engine]` is checked for the unassigned pool. */
const inScope = (config: Config): string[] => {
  const scope = scopeOf(config);
  return scope.length === 0 ? [UNASSIGNED] : scope;
};

/** Whether a policy asks Prometheus, as far as the policies could be read, and there is none. */
const needsPrometheus = (config: Config, role: Role, policiesOf: Loaded['policiesOf']): boolean =>
  config.prometheus.url === null &&
  config.prometheus.auth !== 'keystone' &&
  (role === 'check' || readsPolicies(role)) &&
  inScope(config).some((aggregate) => {
    const policies = policiesOf(aggregate);
    const asks = policies.some(({ enabled, allocation }) => enabled && allocation === undefined);
    return aggregateConfig(config, aggregate).engine.balance && (policies.length === 0 || asks);
  });

const readsPolicies = (role: Reader): boolean =>
  sections.get('engine')?.get('policies_file')?.readBy.includes(role) ?? false;
