/** A given value in quotes, at most 60 characters of it. */
export const quotedValue = (text: string): string =>
  JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);

/** `1 move`, `3 moves`. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** `a, b and 3 more`: at most that many names, and how many are left out. */
export const some = (names: readonly string[], most = 5): string =>
  names.length <= most ? names.join(', ') : `${names.slice(0, most).join(', ')} and ${names.length - most} more`;

/** A text in lines of limited length, broken between words. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration in one or two units: `45 s`, `3 min`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const abs = Math.abs(ms);
  if (abs < 10 * SECOND) return `${(abs / SECOND).toFixed(1).replace(/\.0$/, '')} s`;
  if (abs < MINUTE) return `${Math.floor(abs / SECOND)} s`;
  if (abs < HOUR) return inTwo(abs, [MINUTE, 'min'], [SECOND, 's'], 5);
  if (abs < DAY) return inTwo(abs, [HOUR, 'h'], [MINUTE, 'min'], Number.POSITIVE_INFINITY);
  return inTwo(abs, [DAY, 'd'], [HOUR, 'h'], 10);
}

type Unit = readonly [ms: number, name: string];

/** The smaller unit is left out when it is 0, or when there are `few` or more of the larger one. */
function inTwo(ms: number, [large, name]: Unit, [small, smallName]: Unit, few: number): string {
  const whole = Math.floor(ms / large);
  const rest = Math.floor((ms % large) / small);
  return rest === 0 || whole >= few ? `${whole} ${name}` : `${whole} ${name} ${rest} ${smallName}`;
}

/** Milliseconds in seconds with one decimal, rounded up: a time above a limit does not read as the limit. */
export const secondsUp = (ms: number): number => Math.ceil(ms / 100) / 10;

/** The words of an error, whatever was thrown. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));
