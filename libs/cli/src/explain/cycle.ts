/** Why a cycle ended as it did, for people. Pure. */
import { clause, count, type Decision } from '@kronos/contracts';
import { type ByPolicy, type CycleExplanation, meaningOf } from '@kronos/placement';
import { skipText } from '@kronos/projections';
import type { Explained } from '@kronos/replay';
import { figure } from '../numbers.ts';
import { courseLine, failoverLine, reasonLine, refusals, troublesOf } from '../plans/decision.ts';
import { brokenGroupsLine } from '../plans/leftAlone.ts';
import { type Cell, table } from '../table.ts';
import type { Terminal } from '../terminal.ts';

export const policyValues = (by: ByPolicy): string =>
  Object.entries(by)
    .map(([name, value]) => `${name} ${figure(value)}`)
    .join(', ');

/** Events before this decision that nobody could read and a custodian skipped. */
const skipLines = ({ skips }: Explained['state']): string =>
  skips.map((skip) => `unreadable events were skipped: ${skipText(skip)}\n`).join('');

/** The server groups that the planner leaves broken, because its options say so. */
const leftAlone = ({ snapshot, options }: Explained): string =>
  snapshot === null || options === null ? '' : brokenGroupsLine(snapshot, options);

export function cycleText(terminal: Terminal, explained: Explained): string {
  const { explanation, decision, state } = explained;
  const cycle = explanation?.cycle() ?? null;
  if (cycle === null)
    return `${skipLines(state)}${policiesText(decision)}${troublesOf(decision)}${refusals(decision.refusals)}`;
  const gates = cycle.gates.map((gate) => `blocked by: ${clause(reasonLine(gate))}\n`).join('');
  const rows = cycle.policies.map((p): Cell[] => [
    p.policy,
    figure(p.imbalance),
    figure(p.threshold),
    p.participates
      ? p.detected
        ? {
            text: `above for ${count(p.sustainedCycles, 'cycle')} (${Math.max(1, p.neededCycles)} required)`,
            style: 'yellow',
          }
        : p.acts === false
          ? 'no contention'
          : 'within'
      : { text: p.reason?.text ?? 'skipped', style: 'red' },
    p.highest === null ? '' : `${p.highest.host} ${figure(p.highest.value)}`,
    p.lowest === null ? '' : `${p.lowest.host} ${figure(p.lowest.value)}`,
  ]);
  const drains = cycle.drains
    .map(
      (d) =>
        `drain ${d.host} (${count(d.vms, 'VM')}): ${d.refusal === null ? count(d.moves, 'move') : clause(meaningOf(d.refusal))}\n`,
    )
    .join('');
  return [
    gates,
    decision.course === undefined ? '' : `${courseLine(decision.course)}\n`,
    failoverLine(decision),
    rows.length === 0
      ? ''
      : table(
          terminal,
          [
            { head: 'policy' },
            { head: 'imbalance', right: true },
            { head: 'threshold', right: true },
            { head: 'state', flex: true },
            { head: 'highest', flex: true },
            { head: 'lowest', flex: true },
          ],
          rows,
        ),
    `\n${cycle.hosts.destinations} of ${count(cycle.hosts.all, 'host')} may be destinations${counted(cycle.hosts.refused)}\n`,
    movableText(cycle.vms),
    lessWork(explained),
    assumedNote(cycle.assumed),
    drains,
    skipLines(state),
    troublesOf(decision),
    leftAlone(explained),
    refusals(cycle.refusals),
  ].join('');
}

/** VMs on a disabled host, for instance, may move, but only in an evacuation. */
function movableText({ all, movable, refused, evacuationOnly }: CycleExplanation['vms']): string {
  const later = Object.values(evacuationOnly).reduce((sum, n) => sum + n, 0);
  return `${movable - later} of ${count(all, 'VM')} may move now${counted({ ...refused, ...evacuationOnly })}\n`;
}

/** Says that the planner searched with less work than its options allow; empty where it did not. */
export function lessWork({
  event,
  state: { configured },
}: {
  readonly event: Pick<Explained['event'], 'data'>;
  readonly state: Pick<Explained['state'], 'configured'>;
}): string {
  const { searchWorkLimit } = event.data;
  if (searchWorkLimit === undefined || configured === null) return '';
  return `The search was limited to ${count(searchWorkLimit, 'candidate')} instead of ${configured.options.searchWorkLimit} ([engine] search_work_limit): the decisions before it took longer than evaluation_interval.\n`;
}

/** Under figures that assume released moves to be done. */
export const assumedNote = (moves: number): string =>
  moves === 0 ? '' : `All figures assume that the released moves of ${count(moves, 'VM')} are done.\n`;

const counted = (counts: Readonly<Record<string, number>>): string => {
  const parts = Object.entries(counts).map(([code, n]) => `  ${n}: ${clause(meaningOf(code))}`);
  return parts.map((part) => `\n${part}`).join('');
};

const policiesText = ({ before }: Decision): string =>
  before.policies
    .map(
      (p) =>
        `${p.policy}: imbalance ${figure(p.imbalance)}, threshold ${figure(p.threshold)}${p.participates ? (p.acts === false ? ', no contention' : '') : ', skipped'}\n`,
    )
    .join('');
