import type { Reader } from './option.ts';

/** A reader of the configuration: a service, a command, or `check`, which reads the options of all of them. */
export type Role = Reader | 'check';

/** Where an option's value came from. */
export interface Source {
  /** The file, or `environment`. */
  readonly file: string;
  readonly line: number | null;
  /** `[engine] cooldown` or `OS_ENGINE__COOLDOWN`. */
  readonly option: string;
}

/** Name of the file in problems about overrides. */
export const ENVIRONMENT = 'environment';

/** `OS_ENGINE__EVALUATION_INTERVAL`: the name that oslo.config's environment driver gives an option. */
export const environmentName = (section: string, option: string): string => `OS_${section}__${option}`.toUpperCase();

export const sourceText = (source: Source): string => (source.line === null ? source.file : `line ${source.line}`);
