import { readFileSync } from 'node:fs';
import type { Policy } from '@kronos/contracts';
import { ConfigError, type Problem } from './errors.ts';
import { type Config, type Reader, sections } from './options.ts';
import { parsePolicies } from './policies.ts';
import { resolveConfig } from './resolve.ts';
import { ENVIRONMENT, type Role, type Source } from './source.ts';

/** Where kronos.conf is when nobody says otherwise. */
export const DEFAULT_CONFIG_FILE = '/etc/kronos/kronos.conf';

export interface LoadInput {
  /** kronos.conf. Absent: {@link DEFAULT_CONFIG_FILE}, and if there is none, the environment alone. */
  readonly file?: string | undefined;
  /** Usually process.env. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Who asks: decides which options must be complete and which secret files are opened. */
  readonly role: Role;
  /** Reads a file as text; throws when it cannot. Default: the file system. */
  readonly readFile?: (path: string) => string;
}

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
  const readFile = input.readFile ?? ((path) => readFileSync(path, 'utf8'));
  const file = input.file ?? DEFAULT_CONFIG_FILE;
  const problems: Problem[] = [];
  const missing: Problem[] = [];
  let text = '';
  try {
    text = readFile(file);
  } catch (error) {
    if (input.file !== undefined || !isMissing(error)) throw new ConfigError([unreadable(file, null, error)]);
    // The environment may say everything; when it does not, this is the reason.
    missing.push({
      file,
      line: null,
      option: null,
      problem: 'the file is not there',
      remedy: 'Name yours with --config FILE, or begin with the sample that kronos config sample prints.',
    });
  }
  const resolved = resolveConfig({ file, text, env: input.env, role: input.role, readFile });
  problems.push(...resolved.problems);
  const policies = loadPolicies(resolved.config, input.role, resolved.sources, readFile, problems);
  if (problems.length > 0) throw new ConfigError([...missing, ...problems]);
  return { config: resolved.config, policies, sources: resolved.sources };
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

const readsPolicies = (role: Reader): boolean =>
  sections.get('engine')?.get('policies_file')?.readBy.includes(role) ?? false;

const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT';

function unreadable(file: string, source: Source | null, error: unknown): Problem {
  const why =
    error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown reason';
  const named =
    source === null
      ? ''
      : `, named by ${source.option} (${source.file === ENVIRONMENT ? source.file : `${source.file}:${source.line}`}),`;
  const remedy = isMissing(error) ? 'Create it, or name the right one.' : 'Let this process read it.';
  return { file, line: null, option: null, problem: `the file${named} cannot be read (${why})`, remedy };
}
