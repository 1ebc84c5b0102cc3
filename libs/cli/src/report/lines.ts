/** The statements of a report, for the terminal and for the page alike. Pure. */
import { count, type ProfileSum, profileWords } from '@kronos/contracts';
import { generationText } from '@kronos/placement';
import { courseEnd, courseTime } from '@kronos/status';
import { figure, gibText } from '../numbers.ts';
import { absolute, span } from '../times.ts';
import type { AggregateFigures } from './figures.ts';
import type { ErrorFigures } from './predictions.ts';

export type Line = { readonly label: string; readonly text: string };

/** More codes than these are summed. */
const MOST_CODES = 5;

/** How often each code occurred, in the given order: `cooldown 12, paused 3, others 4`. */
export const codesText = (of: Readonly<Record<string, number>>): string => {
  const all = Object.entries(of);
  const rest = all.slice(MOST_CODES).reduce((sum, [, n]) => sum + n, 0);
  return [
    ...all.slice(0, MOST_CODES).map(([code, n]) => `${code} ${n}`),
    ...(rest === 0 ? [] : [`others ${rest}`]),
  ].join(', ');
};

const total = (of: Readonly<Record<string, number>>): number => Object.values(of).reduce((sum, n) => sum + n, 0);

const inBrackets = (parts: readonly (string | false)[]): string => {
  const said = parts.filter((part) => part !== false);
  return said.length === 0 ? '' : ` (${said.join(', ')})`;
};

const gib = (bytes: number): string => gibText(bytes / 1024 ** 3);

/** The mode of an aggregate in the range: whether plans were released. */
export const modeOf = ({ plans }: AggregateFigures): string => {
  const moved = plans.released + plans.approved > 0;
  if (plans.dryRun > 0)
    return moved ? 'plans were released, others were made in dry run' : 'dry run: nothing was moved';
  return moved ? 'plans were released' : 'no plan was released';
};

/** The table of the policies; what the plans would change is shown of aggregates in dry run. */
export const policyHeads = (of: AggregateFigures): string[] => [
  'policy',
  'threshold',
  'mean',
  'highest',
  'above',
  ...(of.dryRun === null ? [] : ['mean with the plans', 'above with the plans']),
];

export const policyRows = (of: AggregateFigures): string[][] =>
  of.policies.map((one) => [
    one.policy,
    figure(one.threshold),
    figure(one.mean),
    figure(one.highest),
    shareOf(one.aboveMs, of),
    ...(of.dryRun === null ? [] : [figure(one.meanAfterPlans), shareOf(one.aboveAfterPlansMs, of)]),
  ]);

/** Share of the observed time, with the time itself. */
const shareOf = (ms: number, { observedMs }: Pick<AggregateFigures, 'observedMs'>): string =>
  `${span(ms)} (${figure(observedMs === 0 ? 0 : (100 * ms) / observedMs, 1)} %)`;

const foreignLines = ({ foreign: { moves, undone, waitMs } }: AggregateFigures): Line[] =>
  moves === 0
    ? []
    : [
        {
          label: 'Moves of others',
          text: `${moves} undo or repeat moves of Kronos (${undone} undo one)${waitMs === 0 ? '' : `; it balanced nothing for ${span(waitMs)}`}`,
        },
      ];

/** The rest of the course shows whether the imbalance of the range is on its way down. */
const courseLines = ({ course, untilMs }: AggregateFigures): Line[] =>
  course === null
    ? []
    : [
        {
          label: 'Course',
          text: `${count(course.moves, 'move')} of ${figure(course.costGib, 0)} GiB ${courseTime(course)} ${course.moves === 1 ? 'was' : 'were'} left ${courseEnd(course)} at ${absolute(course.atMs, untilMs)}`,
        },
      ];

function movesText({ completed, warned, failed: reasons, skipped, retries }: AggregateFigures['moves']): string {
  const { Cancelled: cancelled = 0, ...faults } = reasons;
  const failed = total(faults);
  const ends = `${completed} completed${inBrackets([warned > 0 && `${warned} with a warning`])}, ${failed} failed${inBrackets([failed > 0 && codesText(faults)])}`;
  return `${ends}${cancelled > 0 ? `, ${cancelled} cancelled` : ''}${skipped > 0 ? `, ${skipped} checked only` : ''}, ${count(retries, 'retry', 'retries')}`;
}

export function linesOf(of: AggregateFigures): Line[] {
  const lines: Line[] = [];
  const say = (label: string, text: string): void => void lines.push({ label, text });
  const { decisions, combined, plans, dryRun, moves, copying, effect, breaches, evacuations } = of;
  const made = decisions.planned + decisions.quiet + decisions.gated;
  const gates = decisions.gated === 0 ? '' : ` (${codesText(of.gates)})`;
  say(
    'Observed',
    `${span(of.observedMs)}: ${count(made, 'decision')}, ${decisions.planned} with a plan, ${decisions.quiet} without, ${decisions.gated} blocked${gates}`,
  );
  const after = dryRun === null ? '' : `; ${figure(combined.meanAfterPlans)} if each plan were carried out`;
  if (combined.mean !== null) say('Combined imbalance', `mean ${figure(combined.mean)}${after}`);
  if (dryRun !== null)
    say(
      'Would have moved',
      `at most ${count(dryRun.moves, 'VM')} in ${count(dryRun.plans, 'plan')}, ${gib(dryRun.memoryMb * 1024 ** 2)} of memory`,
    );
  if (plans.released + plans.proposed > 0)
    say(
      'Plans',
      `${plans.released} released, ${plans.proposed} proposed for approval, ${plans.approved} of them approved`,
    );
  const failed = total(moves.failed);
  if (moves.completed + failed + moves.skipped > 0) say('Moves', movesText(moves));
  if (moves.damaged > 0) say('In ERROR afterwards', count(moves.damaged, 'VM'));
  if (copying.moves > 0)
    say(
      'Copying',
      `${span(copying.runningMs)} in ${count(copying.moves, 'move')}, ${gib(copying.memoryBytes)} of memory`,
    );
  if (effect !== null)
    say(
      'Effect',
      `combined imbalance ${figure(effect.before)} before, ${figure(effect.expected)} expected, ${figure(effect.measured)} measured afterwards (mean of ${count(effect.plans, 'plan')})`,
    );
  lines.push(...courseLines(of));
  lines.push(
    ...predictionLines(of.predictions),
    ...of.profileSums.map(sumLine),
    ...generationLines(of),
    ...brokenLines(of),
  );
  if (breaches.servers > 0)
    say(
      'Group rules',
      `${count(breaches.servers, 'VM')} broke a rule, ${breaches.repairable} of them could be repaired`,
    );
  if (evacuations.servers + evacuations.stuck > 0)
    say('Evacuation', `${count(evacuations.servers, 'VM')} off disabled hosts, ${evacuations.stuck} stuck`);
  lines.push(...foreignLines(of));
  if (total(of.refusals) > 0) say('Refused candidates', codesText(of.refusals));
  return lines;
}

const generationLines = ({ generations, oneWay }: AggregateFigures): Line[] => [
  ...generations.map((one) => ({ label: 'CPU generations', text: generationText(one) })),
  ...(oneWay === 0
    ? []
    : [
        {
          label: 'One-way moves',
          text: `${count(oneWay, 'VM')} planned to newer hosts, from which they may not return`,
        },
      ]),
];

const brokenLines = ({ brokenGroups }: AggregateFigures): Line[] =>
  brokenGroups === undefined
    ? []
    : [{ label: 'Group rules', text: `${brokenGroups}; [engine] enforce_hard_affinity = true repairs them` }];

const sumLine = (sum: ProfileSum): Line => ({
  label: 'Values of VMs',
  text: `${sum.policy}: ${profileWords(sum).text}`,
});

function predictionLines({ soon, later, off }: AggregateFigures['predictions']): Line[] {
  const compared = [
    ...(later === null ? [] : [`${deviationText(later)} ten minutes after moves`]),
    ...(soon === null ? [] : [`${deviationText(soon)} one minute after`]),
  ];
  const texts = [
    ...(compared.length === 0 ? [] : [`values of hosts differ from the predicted ones by ${compared.join('; ')}`]),
    ...off.map(({ policy, text, comparisons }) => `${policy} is off (${count(comparisons, 'comparison')}): ${text}`),
  ];
  return texts.map((text) => ({ label: 'Predictions', text }));
}

const deviationText = ({ comparisons, median, ninth, highest }: ErrorFigures): string =>
  `${figure(median)} (median of ${comparisons}; nine of ten at most ${figure(ninth)}, highest ${figure(highest)})`;

/** Notes on the meaning of the figures, and on their limits. */
export const notesOf = (aggregates: readonly AggregateFigures[]): string[] => [
  ...(aggregates.some(({ dryRun }) => dryRun !== null) ? DRY_RUN_NOTES : []),
  ...(aggregates.some(({ moves }) => moves.completed > 0) ? MOVED_NOTES : []),
];

const DRY_RUN_NOTES = [
  '"With the plans": as if each plan were carried out in full at its decision. Each decision counts by itself.',
  '"At most": a dry run moves nothing, so each cycle plans for the same imbalance again. A plan counts only after the aggregate cooldown, a VM only after its own cooldown.',
];
const MOVED_NOTES = ['The log does not show what the imbalance would have been without the moves.'];
