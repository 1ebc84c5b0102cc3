import type { Policy } from '@kronos/contracts';
import { type LoadInput, readConf, readerOf, unreadable } from './conf.ts';
import { DEFAULT_CONFIG_FILE } from './defaultFile.ts';
import { ConfigError, type Problem } from './errors.ts';
import { type Config, type Reader, sections } from './options.ts';
import { parsePolicies } from './policies.ts';
import type { Role, Source } from './source.ts';

export type { LoadInput } from './conf.ts';
export { DEFAULT_CONFIG_FILE } from './defaultFile.ts';

export interface Loaded {
  readonly config: Config;
  /** Empty for those who do not read them, and with `[engine] balance = false`. */
  readonly policies: readonly Policy[];
  /** Where each option that is set was set, by `section.option`. */
  readonly sources: ReadonlyMap<string, Source>;
}

/**
 * Reads and checks kronos.conf, the environment, secret files and, for those who read them, the policies.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadConfig(input: LoadInput): Loaded {
  const { config, sources, missing, problems: found } = readConf(input);
  const problems = [...found];
  const policies = loadPolicies(config, input.role, sources, readerOf(input), problems);
  const reported = found.some(({ option }) => option === '[prometheus] url' || option === 'OS_PROMETHEUS__URL');
  if (!reported && needsPrometheus(config, input.role, policies))
    problems.push({
      file: input.file ?? DEFAULT_CONFIG_FILE,
      line: null,
      option: '[prometheus] url',
      problem: 'is not set',
      remedy:
        'Set it, or balance by what is allocated (source: allocation in policies.yaml), or set [engine] balance = false.',
    });
  if (problems.length > 0) throw new ConfigError([...missing, ...problems]);
  return { config, policies, sources };
}

function loadPolicies(
  config: Config,
  role: Role,
  sources: ReadonlyMap<string, Source>,
  readFile: (path: string) => string,
  problems: Problem[],
): readonly Policy[] {
  if (!config.engine.balance) return [];
  if (role !== 'check' && !readsPolicies(role)) return [];
  const file = config.engine.policiesFile;
  let text: string;
  try {
    text = readFile(file);
  } catch (error) {
    problems.push(unreadable(file, sources.get('engine.policies_file') ?? null, error));
    return [];
  }
  const parsed = parsePolicies({ file, text });
  problems.push(...parsed.problems);
  return parsed.policies;
}

/** Whether a policy asks Prometheus, as far as the policies could be read, and there is none. */
const needsPrometheus = ({ engine, prometheus }: Config, role: Role, policies: readonly Policy[]): boolean =>
  engine.balance &&
  prometheus.url === null &&
  (role === 'check' || readsPolicies(role)) &&
  (policies.length === 0 || policies.some(({ enabled, allocation }) => enabled && allocation === undefined));

const readsPolicies = (role: Reader): boolean =>
  sections.get('engine')?.get('policies_file')?.readBy.includes(role) ?? false;
