import { readFileSync } from 'node:fs';
import { DEFAULT_CONFIG_FILE } from './defaultFile.ts';
import { ConfigError, type Problem } from './errors.ts';
import type { Config } from './options.ts';
import type { Renamed } from './renamed.ts';
import { resolveConfig } from './resolve.ts';
import { ENVIRONMENT, type Role, type Source } from './source.ts';
import { whyUnreadable } from './unreadable.ts';

export { scopeOf } from './scope.ts';

export interface LoadInput {
  /** kronos.conf. Absent: {@link DEFAULT_CONFIG_FILE}, and if there is none, the environment alone. */
  readonly file?: string | undefined;
  /** Usually process.env. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The reader of the configuration: decides which options must be complete and which secret files are opened. */
  readonly role: Role;
  /** Reads a file as text; throws when it cannot. Default: the file system. */
  readonly readFile?: (path: string) => string;
  /** Former names that are accepted. Default: all that the table has. */
  readonly renamed?: readonly Renamed[] | undefined;
}

export interface ReadConf {
  readonly config: Config;
  /** Where each option that is set was set, by `section.option`. */
  readonly sources: ReadonlyMap<string, Source>;
  readonly problems: readonly Problem[];
  /** Former names of options: this version accepts them, and a later one will not. */
  readonly warnings: readonly Problem[];
  /** Added to the problems, if there are any: that there is no file. */
  readonly missing: readonly Problem[];
}

/**
 * Reads kronos.conf, the environment and secret files, without policies.
 *
 * @throws ConfigError when the file cannot be read
 */
export function readConf(input: LoadInput): ReadConf {
  const readFile = readerOf(input);
  const file = input.file ?? DEFAULT_CONFIG_FILE;
  const missing: Problem[] = [];
  let text = '';
  try {
    text = readFile(file);
  } catch (error) {
    if (input.file !== undefined || !isMissing(error)) throw new ConfigError([unreadableFile(file, null, error)]);
    // The environment may say everything; when it does not, this is the reason.
    missing.push({
      file,
      line: null,
      option: null,
      problem: 'the file is not there',
      remedy: 'Name it with --config FILE. kronos demo tries Kronos without it, kronos init writes it for a cloud.',
    });
  }
  const resolved = resolveConfig({ file, text, env: input.env, role: input.role, readFile, renamed: input.renamed });
  return { ...resolved, missing };
}

/** The configuration for a role that reads no policies. @throws ConfigError with every problem at once */
export function loadConf(input: LoadInput): Config {
  const read = readConf(input);
  if (read.problems.length > 0) throw configError(read, read.problems);
  return read.config;
}

/** The error of these problems, with the warnings before them. Where nothing is set at all, they all follow from the file that is not there. */
export const configError = ({ missing, sources, warnings }: ReadConf, problems: readonly Problem[]): ConfigError =>
  new ConfigError(missing.length > 0 && sources.size === 0 ? missing : [...missing, ...warnings, ...problems]);

export const readerOf = ({ readFile }: LoadInput): ((path: string) => string) =>
  readFile ?? ((path) => readFileSync(path, 'utf8'));

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

const isMissing = (error: unknown): boolean => hasCode(error, 'ENOENT');

export function unreadableFile(file: string, source: Source | null, error: unknown): Problem {
  const named =
    source === null
      ? ''
      : `, named by ${source.option} (${source.file === ENVIRONMENT ? source.file : `${source.file}:${source.line}`}),`;
  const remedy = isMissing(error)
    ? 'Create it, or correct the path.'
    : hasCode(error, 'EISDIR')
      ? 'Name a file in it.'
      : 'Allow this process to read it.';
  return {
    file,
    line: null,
    option: null,
    problem: `the file${named} cannot be read: ${whyUnreadable(error)}`,
    remedy,
  };
}
