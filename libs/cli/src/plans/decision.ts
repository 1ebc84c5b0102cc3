/** The parts of decisions beside their plans, for people: reasons, courses, refusals. Pure. */
import {
  type Course,
  clause,
  count,
  type Decision,
  failoverText,
  foreignText,
  type Reason,
  type Stuck,
} from '@kronos/contracts';
import { meaningOf } from '@kronos/placement';
import type { PlanRecord } from '@kronos/replay';
import { courseEnd, courseTime } from '@kronos/status';
import { figure, gibText, wholePercent } from '../numbers.ts';

/** The distance of a plan from the best one. @param any the plans that it is compared with: `plan`, `10 moves` */
export const possible = (
  { lowerBound, shareOfPossible }: Pick<PlanRecord, 'lowerBound' | 'shareOfPossible'>,
  any = 'plan',
): string =>
  shareOfPossible === null
    ? ''
    : `, ${wholePercent(shareOfPossible)} of what any ${any} could gain${lowerBound === null ? '' : ` (none can go below ${figure(lowerBound)})`}`;

/** The duties that the plan does not do: VMs that stay, evacuations that have not ended; and its warnings. */
export function troublesOf({
  stuck,
  warnings,
  evacuations,
}: {
  readonly stuck: readonly Stuck[];
  readonly warnings: readonly Reason[];
  readonly evacuations: Decision['evacuations'];
}): string {
  const lines = [
    ...evacuations.map((e) => `evacuation of ${e.host}: ${e.state}, ${count(e.left, 'VM')} on the host`),
    ...stuck.map((s) => `${s.serverName} cannot leave ${s.host}: ${clause(reasonLine(s.reason))}`),
    ...warnings.map(reasonLine),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** The rest of a course: its moves, and where the cycles are known, about their time. */
export function courseLine({
  moves,
  costGib,
  reaches,
  cycles,
  seconds,
}: Pick<Course, 'moves' | 'costGib' | 'reaches'> & Partial<Pick<Course, 'cycles' | 'seconds'>>): string {
  const time = cycles === undefined || seconds === undefined ? '' : ` ${courseTime({ cycles, seconds })}`;
  return `course: ${count(moves, 'move')} of ${gibText(costGib, 0)}${time} ${moves === 1 ? 'is' : 'are'} left ${courseEnd({ reaches })}`;
}

/** Whether hosts may fail, where failover_hosts is not 0, and moves of others, where there are any. */
export const failoverLine = ({ failover, foreign }: Pick<Decision, 'failover' | 'foreign'>): string =>
  `${failover === undefined ? '' : `${failoverText(failover)}\n`}${foreign === undefined ? '' : `${foreignText(foreign)}\n`}`;

/** Facts that are ids: texts name these servers and groups. */
const IDS: ReadonlySet<string> = new Set(['server', 'servers', 'group', 'groups']);

/** A reason with its figures, and with the names that its text lacks. */
export function reasonLine({ text, detail }: Reason): string {
  const said = new Set(text.split(/[\s,;()"]+/).map((word) => word.replace(/[.:]$/, '')));
  const facts = Object.entries(detail ?? {}).flatMap(([key, value]) =>
    IDS.has(key) || (typeof value === 'string' && said.has(value)) ? [] : factsOf(words(key), value),
  );
  if (facts.length === 0) return text;
  const stop = text.endsWith('.') ? '.' : '';
  return `${stop === '' ? text : text.slice(0, -1)} (${facts.join(', ')})${stop}`;
}

/** `fromZone`: `from zone`. */
const words = (key: string): string => key.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** A figure, a text, or counts by code. */
function factsOf(name: string, value: unknown): string[] {
  if (typeof value === 'number') return [`${name} ${figure(value)}`];
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return [`${name} ${value.join(' and ')}`];
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [`${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`];
  const parts = Object.entries(value).flatMap(([key, of]) => factsOf(key, of));
  return parts.length === 0 ? [] : [`${name}: ${parts.join(', ')}`];
}

/** Why candidates were refused, the most frequent first. */
export function refusals(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (entries.length === 0) return '';
  return `\nrefused:\n${entries.map(([code, n]) => `  ${String(n).padStart(7)}  ${meaningOf(code)}\n`).join('')}`;
}
