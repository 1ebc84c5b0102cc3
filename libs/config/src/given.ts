import type { Problem } from './errors.ts';
import type { Parsed } from './kinds.ts';
import type { Option } from './option.ts';
import type { Source } from './source.ts';

/** A value as the file or the environment gives it. */
export interface Given {
  readonly raw: string;
  readonly source: Source;
}

/** The value of an option from its text. An empty text means "not set" where that is possible, and is an error elsewhere. */
export function parseGiven(option: Option<unknown>, raw: string): Parsed<unknown> {
  if (raw !== '' || option.kind === 'list' || option.kind === 'cells') return option.parse(raw);
  if (option.default === null) return { ok: true, value: null };
  return { ok: false, problem: 'is empty', remedy: `Write ${option.takes}, or take the line away for the default.` };
}

/** The value of an option, or the problem with it and its place. */
export function readGiven(
  option: Option<unknown>,
  { raw, source }: Given,
): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly wrong: Problem } {
  const parsed = parseGiven(option, raw);
  if (parsed.ok) return parsed;
  return { ok: false, wrong: { ...source, problem: parsed.problem, remedy: parsed.remedy } };
}
