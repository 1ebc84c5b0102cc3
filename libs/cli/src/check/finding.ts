/** One thing that was checked. `skipped`: a part that it needs failed, or nobody can see it from here. */
export type CheckFinding = {
  /** Kind of check, for programs: stays the same over versions. */
  readonly code: string;
  /** The part that was checked: `NATS`, `aggregate gpu`, `policy cpu imbalance_query`. */
  readonly what: string;
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  /** The finding, or the problem and its place. Lines are separated by `\n`. */
  readonly text: string;
  /** The remedy; null when there is nothing to do. */
  readonly remedy: string | null;
  /** The figures behind the text. */
  readonly detail: Readonly<Record<string, number | string | readonly string[]>>;
};

export type Report = (finding: CheckFinding) => void;

type Result = Pick<CheckFinding, 'text'> & {
  readonly remedy?: string | undefined;
  readonly detail?: CheckFinding['detail'];
};

export const finding = (
  state: CheckFinding['state'],
  code: string,
  what: string,
  { text, remedy, detail = {} }: Result,
): CheckFinding => ({ code, what, state, text, remedy: remedy ?? null, detail });
