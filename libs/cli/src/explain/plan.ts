/** Why a plan has its steps, for people. Pure. */
import { count } from '@kronos/contracts';
import { type DestinationVerdict, refusalText } from '@kronos/placement';
import { estimatedDuration } from '@kronos/projections';
import type { Calibration, Explained } from '@kronos/replay';
import { type Estimate, gibOfMove } from '@kronos/rules';
import { figure } from '../numbers.ts';
import { courseLine, failoverLine, possible, reasonLine, refusals, troublesOf } from '../plans/decision.ts';
import { type Cell, STEP_COLUMNS, stepCells, table } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import { ASSUMED_PACE, estimated, expected } from '../times.ts';
import { assumedNote, lessWork, policyValues } from './cycle.ts';

/** Hosts that are listed as destinations. */
const SHOWN = 8;

/** The effect of one step, by policy, on its source and its destination, beside the other steps of the plan. */
function effectText(step: ReturnType<NonNullable<Explained['explanation']>['step']> | null): string {
  if (step === null) return '';
  const { source, destination } = step;
  const change = (side: typeof source, policy: string): string[] => {
    const [before, after] = [side.before, side.after].map((by) => figure(by[policy] ?? null, 2));
    return before === after ? [] : [`${side.host} ${before} -> ${after}`];
  };
  return Object.keys(source.before)
    .map((policy) => ({ policy, changes: [...change(source, policy), ...change(destination, policy)] }))
    .filter(({ changes }) => changes.length > 0)
    .map(({ policy, changes }) => `${policy} ${changes.join(', ')}`)
    .join('; ');
}

/** Step -> how long its move takes, by the moves before this decision. */
export const stepTimes = ({ decision, state, paces }: Explained): Map<number, Estimate> =>
  new Map(
    decision.plan?.steps.map((step) => [
      step.step,
      estimatedDuration(state, { from: step.from, destination: step.to, gib: gibOfMove(step) }, paces),
    ]),
  );

export function planText(terminal: Terminal, explained: Explained): string {
  const { explanation, decision } = explained;
  if (decision.plan === null) return 'This decision has no plan: kronos explain cycle shows why.\n';
  const plan = explanation?.plan() ?? null;
  const { budget, candidatesEvaluated, after } = decision.plan;
  const course = new Map(plan?.course.map((at) => [at.step, at.combined]));
  const times = stepTimes(explained);
  const measured = [...times.values()].every((time) => time.measured);
  const rows = decision.plan.steps.map((step): Cell[] => [
    ...stepCells(step),
    figure(course.get(step.step) ?? null),
    durationText(times.get(step.step)),
    [effectText(explanation?.step(step.step) ?? null), step.why === undefined ? '' : reasonLine(step.why)]
      .filter((text) => text !== '')
      .join('; '),
  ]);
  const ended =
    plan?.endedBy === 'work' && explained.event.data.searchWorkLimit === undefined
      ? 'The search reached its work limit ([engine] search_work_limit): a higher limit may find a better plan.\n'
      : '';
  const left = decision.course === undefined ? '' : `${courseLine(decision.course)}\n`;
  return `combined imbalance ${figure(decision.before.combined)} -> ${figure(after.combined)}${possible(decision.plan, count(budget, 'move'))}; ${count(candidatesEvaluated, 'candidate')} evaluated\n${left}${failoverLine(decision)}\n${table(
    terminal,
    [
      ...STEP_COLUMNS,
      { head: 'imbalance then', right: true, minor: true },
      { head: 'takes', minor: true },
      { head: 'why', flex: true, below: true },
    ],
    rows,
  )}${explanation === null ? '' : 'Figures of hosts: before and after the whole plan. Gain: how much higher the imbalance after the plan would be without the move.\n'}${measured ? '' : `Times are ${ASSUMED_PACE}.\n`}${ended}${lessWork(explained)}${assumedNote(explanation?.cycle().assumed ?? 0)}${troublesOf(decision)}${refusals(decision.refusals)}`;
}

/** Compares the values of the hosts after the moves with the predicted ones. */
export function calibrationText(terminal: Terminal, calibration: Calibration | null): string {
  if (calibration === null || calibration.hosts.length === 0) return '';
  const rows = calibration.hosts.map(({ policy, host, before, predicted, soon, later }) => [
    host,
    policy,
    figure(before),
    `${figure(predicted)} / ${figure(soon)}`,
    figure(later),
  ]);
  const heads = ['host', 'policy', 'before', 'predicted / measured', 'after 10 minutes'];
  const off = calibration.off.map(
    ({ policy, error, threshold, text }) =>
      `${paint(terminal, 'yellow', `${policy}: predictions are off by up to ${figure(error)}, more than its threshold ${figure(threshold)}`)}: ${text}\n`,
  );
  return `\nMeasured a minute after the last move of the plan, and ten minutes after it:\n${table(
    terminal,
    heads.map((head, i) => ({ head, right: i > 1 })),
    rows,
  )}${off.join('')}`;
}

const durationText = (time: Estimate | undefined): string => (time === undefined ? '' : expected(time));

export function stepText(terminal: Terminal, explained: Explained, number: number): string {
  const { explanation, decision } = explained;
  const step = decision.plan?.steps.find((one) => one.step === number);
  const answer = explanation?.step(number) ?? null;
  const head =
    step === undefined
      ? ''
      : `step ${number}: ${step.serverName} from ${step.from} to ${step.to} (${step.phase})\n${step.why === undefined ? '' : `${reasonLine(step.why)}\n`}`;
  if (answer === null) return head;
  const { source, destination, combined } = answer;
  const time = stepTimes(explained).get(number);
  return [
    head,
    time === undefined ? '' : `time of its move: ${estimated(time)}\n`,
    `its weight: ${policyValues(answer.weights)}\n`,
    `${source.host}: ${policyValues(source.before)} -> ${policyValues(source.after)}\n`,
    `${destination.host}: ${policyValues(destination.before)} -> ${policyValues(destination.after)}\n`,
    `combined imbalance with the whole plan ${figure(combined.withStep)}, without this step ${figure(combined.withoutStep)}\n\n`,
    destinationsText(terminal, 'elsewhere', answer.elsewhere),
  ].join('');
}

export function destinationsText(
  terminal: Terminal,
  title: string,
  destinations: readonly DestinationVerdict[],
  yes = 'legal',
): string {
  const rows = destinations
    .slice(0, SHOWN)
    .map((d): Cell[] => [
      d.host,
      figure(d.combined),
      figure(d.gain),
      d.refusal !== null
        ? { text: refusalText(d) ?? '', style: 'red' }
        : d.worsens.length > 0
          ? { text: `would worsen ${d.worsens.join(', ')}`, style: 'yellow' }
          : { text: yes, style: 'green' },
    ]);
  const more = destinations.length > SHOWN ? `${destinations.length - SHOWN} more: --json lists all of them.\n` : '';
  return `${table(
    terminal,
    [
      { head: title, flex: true, host: true },
      { head: 'imbalance', right: true },
      { head: 'gain', right: true },
      { head: '', flex: true },
    ],
    rows,
  )}${more}`;
}
