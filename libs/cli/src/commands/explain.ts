import { didYouMean } from '@kronos/config/nearest';
import {
  clause,
  count,
  type Decision,
  decisionWords,
  iso,
  type Snapshot,
  sentence,
  timeMs,
  timeOf,
} from '@kronos/contracts';
import { someOf } from '@kronos/operator/scope';
import {
  type Assumed,
  type ByPolicy,
  type CycleExplanation,
  type DestinationVerdict,
  type HostExplanation,
  meaningOf,
} from '@kronos/placement';
import { type DamagedMove, estimatedDuration, momentText, skipText, startable } from '@kronos/projections';
import {
  type Calibration,
  type CellStory,
  calibratePlan,
  type Explained,
  explainDecision,
  explainWhere,
  type FoundMoment,
  type FoundProposal,
  findCellStories,
  findHostFailures,
  findMoment,
  findProposal,
  type History,
  type HostFailure,
  NotOnTheLog,
  type WantedDecision,
} from '@kronos/replay';
import { type Estimate, gibOfMove } from '@kronos/rules';
import { ratioText } from '@kronos/status';
import { brokenGroups } from '../brokenGroups.ts';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { authorText } from '../names.ts';
import { figure } from '../numbers.ts';
import { withSession } from '../open.ts';
import { answer } from '../output.ts';
import { openRecording, tellProblems } from '../recordings.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { type Cell, STEP_COLUMNS, stepCells, table } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import { ASSUMED_PACE, absolute, estimated, expected, parseTime, said, when } from '../times.ts';
import { courseLine, failoverLine, possible, reasonLine, refusals, troublesOf } from './plan.ts';
import { methodText, proposalText, RELEASES } from './proposals.ts';

export type ExplainOptions = ConfigOption &
  OutputOption &
  AggregateOption & { readonly at?: string; readonly in?: string; readonly step?: readonly number[] };

/** Hosts that are listed as destinations. */
const SHOWN = 8;

/** kronos explain cycle. */
export const explainCycle = (shell: Shell, options: ExplainOptions): Promise<void> =>
  run(shell, options, async (history, wanted) => {
    const explained = await explainDecision(history, wanted);
    const moment = wanted.atMs === undefined ? null : momentLine(await findMoment(history, explained), shell.now());
    await show(shell, options, explained, {
      explanation: explained.explanation?.cycle() ?? null,
      text: (terminal) =>
        `${moment === null ? '' : `${paint(terminal, 'bold', moment)}\n\n`}${said(cycleText(terminal, explained), shell.now())}`,
      ...(moment === null ? {} : { more: { moment } }),
    });
  });

/** What happened at a past decision, in one line. */
const momentLine = ({ moment, facts }: FoundMoment, nowMs: number): string =>
  said(momentText(moment, facts, { clock: (ms) => absolute(ms, nowMs), ratio: ratioText }), nowMs);

/** kronos explain plan. */
export const explainPlan = (shell: Shell, planId: string | undefined, options: ExplainOptions): Promise<void> =>
  run(shell, options, async (history, wanted) => {
    const proposal = planId === undefined ? null : await findProposal(history, wanted.aggregates, planId);
    if (proposal !== null) {
      await showProposal(shell, options, proposal);
      return;
    }
    const explained = await explainDecision(history, { ...wanted, planId: planId ?? null });
    const { explanation, decision } = explained;
    const { step } = options;
    if (step === undefined) {
      const plan = explanation?.plan() ?? null;
      const times = [...stepTimes(explained)].map(([number, duration]) => ({ step: number, duration }));
      const calibration = await calibratePlan(history, explained);
      await show(shell, options, explained, {
        explanation: plan === null ? null : { ...plan, times, calibration },
        text: (terminal) => `${planText(terminal, explained)}${calibrationText(terminal, calibration)}`,
      });
      return;
    }
    const there = new Set(decision.plan?.steps.map((one) => one.step));
    for (const number of step)
      if (!there.has(number))
        throw new UsageError(`there is no step ${number}`, `The plan has ${count(there.size, 'step')}.`);
    const answers = step.map((number) => explanation?.step(number) ?? null);
    await show(shell, options, explained, {
      explanation: answers.length === 1 ? (answers[0] ?? null) : answers,
      text: (terminal) => step.map((number) => stepText(terminal, explained, number)).join('\n'),
    });
  });

/** Says when a decision cannot be run again, or gives another one. */
const againNotes = (terminal: Terminal, missing: string | null, same: boolean | null, other: string): string =>
  [
    ...(missing === null ? [] : [`Kronos cannot run it again: ${missing}. This is the record on the log.`]),
    ...(same === false ? [`Run again, it gives another decision. ${other}`] : []),
  ]
    .map((note) => `${paint(terminal, 'yellow', note)}\n`)
    .join('');

/** A plan that a person asked for: what was recorded, why, and whether running it again gives the same. */
async function showProposal(shell: Shell, options: ExplainOptions, proposal: FoundProposal): Promise<void> {
  const { event, decision, verdict } = proposal;
  const { aggregate, data } = event;
  const { step } = options;
  const steps = step === undefined ? decision.steps : decision.steps.filter((one) => step.includes(one.step));
  if (step !== undefined && steps.length < new Set(step).size)
    throw new UsageError(
      `there is no step ${step.join(', ')}`,
      `The plan has ${count(decision.steps.length, 'step')}.`,
    );
  const same = verdict.verdict === 'notReplayed' ? null : verdict.verdict === 'identical';
  const missing = verdict.verdict === 'notReplayed' ? verdict.reason : null;
  const { snapshotId, snapshotTime, plannerVersion, planId } = data;
  const value = {
    aggregate,
    planId,
    snapshotId,
    snapshotTime,
    plannerVersion,
    missing,
    same,
    decision: { ...decision, steps },
  };
  await answer(shell, options, value, (terminal) => {
    const why = steps.flatMap((one) =>
      one.why === undefined ? [] : [`step ${one.step}: ${one.serverName}: ${reasonLine(one.why)}\n`],
    );
    const state = data.release === 'dryRun' ? 'in a dry run' : data.release;
    const shown = proposalText(terminal, { aggregate, data: { ...data, ...decision, steps } }, state);
    return `${aggregate}, ${when(timeMs(snapshotTime), shell.now())} (${snapshotId})\n${againNotes(terminal, missing, same, 'kronos replay shows the difference.')}\n${shown}${why.join('')}`;
  });
}

/** kronos explain vm. */
export const explainVm = (shell: Shell, vm: string, options: ExplainOptions): Promise<void> =>
  run(shell, options, (history, wanted) => explainOneVm(shell, options, { history, wanted }, vm));

type Asked = { readonly history: History; readonly wanted: WantedDecision };

/** @param vm a name, a uuid, or the beginning of the uuid of one VM */
async function explainOneVm(shell: Shell, options: ExplainOptions, asked: Asked, vm: string): Promise<void> {
  const { history, wanted } = asked;
  const is = (id: string, name: string): boolean => id === vm || name === vm;
  const untilMs = wanted.atMs ?? shell.now();
  const stories = await findCellStories(history, is, untilMs);
  const told = (terminal: Terminal): string =>
    stories.map((story) => cellStoryText(terminal, story, untilMs)).join('\n');
  const seen = new Map<string, string>();
  const explained = await where(history, wanted, vm, {
    name: `the VM ${JSON.stringify(vm)}`,
    known: ({ servers }) => {
      for (const { id, name } of servers) seen.set(id, name);
      return servers.flatMap(({ id, name }) => [id, name]);
    },
    onLog: ({ decision }) => mentions(decision, is).length > 0,
  }).catch((error: unknown) => {
    if (error instanceof NotOnTheLog) return error;
    throw error;
  });
  if (explained instanceof NotOnTheLog) {
    // With stories it was deleted, or is in no aggregate in scope now.
    if (stories.length === 0) {
      const id = begun(vm, seen);
      if (id === null) throw explained;
      await explainOneVm(shell, options, asked, id);
      return;
    }
    const value = { missing: explained.message, decision: null, explanation: null, cells: stories };
    await answer(shell, options, value, (terminal) => `${explained.message}\n\n${told(terminal)}`);
    return;
  }
  const called = explained.snapshot?.servers.filter((server) => is(server.id, server.name)) ?? [];
  const id = onlyOne(called, vm)?.id ?? vm;
  await show(shell, options, explained, {
    explanation: explained.explanation?.vm(id) ?? null,
    text: (terminal) =>
      `${vmText(terminal, explained, { id, is, nowMs: shell.now() })}${stories.length === 0 ? '' : `\n${told(terminal)}`}`,
    more: { cells: stories },
  });
}

type Called = Pick<Snapshot['servers'][number], 'id' | 'host' | 'projectId'>;

/** The VM with this name or uuid. @throws UsageError where several have the name: Nova lets them, and each would have another answer */
export function onlyOne(called: readonly Called[], vm: string): Called | undefined {
  if (called.length <= 1) return called[0];
  const each = called.map(
    ({ id, host, projectId }) => `${id} on ${host}${projectId === null ? '' : ` (project ${projectId})`}`,
  );
  throw new UsageError(`${called.length} VMs are called ${JSON.stringify(vm)}`, `Give the uuid: ${each.join(', ')}`);
}

/** Tables show this many characters of a uuid. Fewer of them are rather meant as a name. */
const UUID_START = 8;

/**
 * The VM whose uuid begins with this text; null: none does.
 *
 * @param names by uuid
 * @throws UsageError that names the VMs, where several uuids or names begin with it
 */
export function begun(text: string, names: ReadonlyMap<string, string>): string | null {
  const ids = text.length < UUID_START ? [] : [...names.keys()].filter((id) => id.startsWith(text.toLowerCase()));
  const [only, ...others] = ids;
  if (only !== undefined && others.length === 0) return only;
  const meant = ids.length > 0 ? ids : [...new Set(names.values())].filter((name) => name.startsWith(text)).sort();
  if (meant.length === 0) return null;
  const what = ids.length > 0 ? 'uuids' : 'names';
  throw new UsageError(
    `${count(meant.length, 'VM')} ${meant.length === 1 ? 'begins' : 'begin'} with ${JSON.stringify(text)}`,
    `Name one, or give its uuid; their ${what}: ${someOf(meant, 'kronos vms')}.`,
  );
}

/** kronos explain host. */
export const explainHost = (shell: Shell, host: string, options: ExplainOptions): Promise<void> =>
  run(shell, options, async (history, wanted) => {
    const explained = await where(history, wanted, host, {
      name: `the host ${JSON.stringify(host)}`,
      known: ({ hosts }) => hosts.map(({ name }) => name),
      onLog: ({ decision }) => decision.plan?.steps.some((step) => step.from === host || step.to === host) ?? false,
    });
    const failures = await findHostFailures(history, host, wanted.atMs ?? shell.now());
    await show(shell, options, explained, {
      explanation: explained.explanation?.host(host) ?? null,
      text: (terminal) => `${failureLines(explained, failures, shell.now())}${hostText(terminal, explained, host)}`,
      more: { failures: failures.map(({ atMs, data }) => ({ atMs, ...data })) },
    });
  });

/** The decision that knows a VM or a host. @throws NotOnTheLog with the name that was probably meant */
async function where(
  history: History,
  wanted: WantedDecision,
  name: string,
  what: {
    readonly name: string;
    readonly known: (snapshot: Snapshot) => readonly string[];
    readonly onLog: Parameters<typeof explainWhere>[2]['onLog'];
  },
): Promise<Explained> {
  const seen = new Set<string>();
  try {
    return await explainWhere(history, wanted, {
      ...what,
      inSnapshot(snapshot) {
        const names = what.known(snapshot);
        for (const one of names) seen.add(one);
        return names.includes(name);
      },
    });
  } catch (error) {
    if (!(error instanceof NotOnTheLog)) throw error;
    throw new NotOnTheLog(error.message, `${didYouMean(name, [...seen])}${error.remedy}`, error);
  }
}

async function run(
  shell: Shell,
  options: ExplainOptions,
  explain: (history: History, wanted: WantedDecision) => Promise<void>,
): Promise<void> {
  const at = options.at === undefined ? {} : { atMs: parseTime('--at', options.at, shell.now()) };
  if (options.in !== undefined) {
    const { history, about, problems } = await openRecording(shell, options.in);
    tellProblems(shell, history.name, problems);
    await explain(history, { aggregates: filterAggregates(about.aggregates, options.aggregate), ...at });
    return;
  }
  await withSession(shell, options, async ({ history, scope }) => {
    await explain(history, { aggregates: filterAggregates(scope, options.aggregate), ...at });
  });
}

/** An explanation as JSON and as text, with what JSON has beside it. */
type Shown = {
  readonly explanation: object | null;
  readonly text: (terminal: Terminal) => string;
  readonly more?: object;
};

/** The steps whose window closed after the snapshot and before the decision was on the log. */
export function lateNote(
  { event: { time, data }, decision: { plan } }: Pick<Explained, 'event' | 'decision'>,
  nowMs: number,
): string {
  if (plan === null || plan.window?.open === false || data.release === 'dryRun') return '';
  const late = plan.steps.length - startable(plan.steps, timeMs(time)).length;
  return late === 0
    ? ''
    : `${count(late, 'step')} not released: the window closed before the decision was made at ${when(timeMs(time), nowMs)}\n`;
}

/** Shows the explanation under the decision that it is of. */
async function show(
  shell: Shell,
  options: ExplainOptions,
  explained: Explained,
  { explanation, text, more = {} }: Shown,
): Promise<void> {
  const { event, decision, missing, same } = explained;
  const { snapshotId, snapshotTime, plannerVersion } = event.data;
  const { aggregate } = event;
  const value = { aggregate, snapshotId, snapshotTime, plannerVersion, missing, same, decision, explanation, ...more };
  await answer(shell, options, value, (terminal) => {
    const outcome = paint(
      terminal,
      decision.outcome === 'planned' ? 'green' : 'yellow',
      decisionWords[decision.outcome],
    );
    const notes = againNotes(
      terminal,
      missing,
      same,
      'This explains the new decision; kronos replay shows the difference.',
    );
    return `${aggregate}, ${when(timeMs(snapshotTime), shell.now())} (${snapshotId}): ${outcome}: ${said(clause(decision.reason.text), shell.now())}\n${lateNote(explained, shell.now())}${notes}\n${text(terminal)}`;
  });
}

const values = (by: ByPolicy): string =>
  Object.entries(by)
    .map(([name, value]) => `${name} ${figure(value)}`)
    .join(', ');

/** Events before this decision that nobody could read and a custodian skipped. */
const skipLines = ({ skips }: Explained['state']): string =>
  skips.map((skip) => `unreadable events were skipped: ${skipText(skip)}\n`).join('');

/** What the planner leaves alone, because its options say so. */
function leftAlone({ snapshot, options }: Explained): string {
  if (snapshot === null || options === null) return '';
  const { brokenGroups: text } = brokenGroups(snapshot, options);
  return text === undefined ? '' : `${text} ([engine] enforce_hard_affinity = false: Kronos does not repair them)\n`;
}

function cycleText(terminal: Terminal, explained: Explained): string {
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

/** Says that the planner lowered its work. */
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
const assumedNote = (moves: number): string =>
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
const stepTimes = ({ decision, state, paces }: Explained): Map<number, Estimate> =>
  new Map(
    decision.plan?.steps.map((step) => [
      step.step,
      estimatedDuration(state, { from: step.from, destination: step.to, gib: gibOfMove(step) }, paces),
    ]),
  );

function planText(terminal: Terminal, explained: Explained): string {
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
  )}${explanation === null ? '' : 'Figures of hosts: before and after the whole plan.\n'}${measured ? '' : `Times are ${ASSUMED_PACE}.\n`}${ended}${lessWork(explained)}${assumedNote(explanation?.cycle().assumed ?? 0)}${troublesOf(decision)}${refusals(decision.refusals)}`;
}

/** What the hosts have after the moves beside what was predicted. */
function calibrationText(terminal: Terminal, calibration: Calibration | null): string {
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

function stepText(terminal: Terminal, explained: Explained, number: number): string {
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
    `its weight: ${values(answer.weights)}\n`,
    `${source.host}: ${values(source.before)} -> ${values(source.after)}\n`,
    `${destination.host}: ${values(destination.before)} -> ${values(destination.after)}\n`,
    `combined imbalance with the whole plan ${figure(combined.withStep)}, without this step ${figure(combined.withoutStep)}\n\n`,
    destinationsText(terminal, 'elsewhere', answer.elsewhere),
  ].join('');
}

function destinationsText(
  terminal: Terminal,
  title: string,
  destinations: readonly DestinationVerdict[],
  yes = 'legal',
): string {
  const rows = destinations.slice(0, SHOWN).map((d): Cell[] => [
    d.host,
    figure(d.combined),
    figure(d.gain),
    d.refusal !== null
      ? {
          text: d.lacks ?? (d.novaSaid === undefined ? meaningOf(d.refusal) : `Nova refused it: ${d.novaSaid}`),
          style: 'red',
        }
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

/** The statements of a decision about a VM. */
function mentions(decision: Decision, is: (id: string, name: string) => boolean): string[] {
  const steps = decision.plan?.steps
    .filter((s) => is(s.serverId, s.serverName))
    .map(
      (s) => `step ${s.step} moves it from ${s.from} to ${s.to}${s.why === undefined ? '' : `: ${clause(s.why.text)}`}`,
    );
  const stuck = decision.stuck
    .filter((s) => is(s.serverId, s.serverName))
    .map((s) => `it cannot leave ${s.host}: ${clause(reasonLine(s.reason))}`);
  return [...(steps ?? []), ...stuck];
}

/** Moves before this decision that left their servers in ERROR. */
const damagedLines = (terminal: Terminal, { state }: Explained, concerns: (move: DamagedMove) => boolean): string =>
  [...state.damaged.values()]
    .filter(concerns)
    .map(
      ({ serverName, from, destination, atMs, taskId, reasons }) =>
        `${paint(terminal, 'red', `${serverName} was in ERROR after its move from ${from} to ${destination}`)} (${iso(atMs)}, ${taskId}): ${reasons.map(({ text }) => text).join('; ')}\n`,
    )
    .join('');

/** What a decision made of a VM, for people. */
export function vmText(
  terminal: Terminal,
  explained: Explained,
  {
    id,
    is,
    nowMs,
  }: { readonly id: string; readonly is: (id: string, name: string) => boolean; readonly nowMs: number },
): string {
  const vm = explained.explanation?.vm(id) ?? null;
  const damaged = damagedLines(terminal, explained, (move) => move.serverId === id);
  const mentioned = mentions(explained.decision, is)
    .map((line) => `${line}\n`)
    .join('');
  if (vm === null) return `${damaged}${mentioned === '' ? 'The decision does not mention it.\n' : mentioned}`;
  const detail = Object.entries(vm.verdict.detail).map(
    ([key, value]) => `${key} ${typeof value === 'number' ? figure(value) : said(String(value), nowMs)}`,
  );
  const verdict =
    vm.steps.length > 0
      ? mentioned
      : `it stays: ${clause(meaningOf(vm.verdict.code))}${detail.length === 0 ? '' : ` (${detail.join(', ')})`}\n${mentioned}`;
  return [
    `${vm.serverName} (${vm.serverId}) on ${vm.host}${vm.assumed === null ? '' : `, ${assumedText(vm.assumed)}`}\n`,
    damaged,
    verdict,
    `its weight: ${values(vm.weights)}${vm.groups.length === 0 ? '' : `; in ${vm.groups.length === 1 ? 'group' : 'groups'} ${vm.groups.join(', ')}`}\n\n`,
    vm.refusal === null
      ? destinationsText(terminal, 'if it went to', vm.destinations)
      : destinationsText(terminal, 'if it could move to', vm.destinations, 'takes it'),
  ].join('');
}

/** One plan between cells as it concerns a VM: what it says of the VM, who answered it, and what became of the move. */
function cellStoryText(terminal: Terminal, story: CellStory, nowMs: number): string {
  const { aggregate, to, planId, proposedAtMs, expiresAtMs, serverName, step, reason, state, events } = story;
  const why = reason === null ? '' : `: ${clause(reasonLine(reason))}`;
  const what =
    step === null
      ? `it stays${why}`
      : `step ${step.step} moves it from ${step.from} to ${step.to} (${methodText(step)})${why}`;
  const ends: Readonly<Record<CellStory['state'], string | null>> = {
    stays: null,
    dryRun: RELEASES.dryRun,
    notReleased: RELEASES.none,
    waitsForApproval: `waits for approval until ${when(expiresAtMs, nowMs)}: kronos approve ${planId}`,
    expired: `expired at ${absolute(expiresAtMs, nowMs)}: nobody approved it`,
    rejected: null,
    leftOut: 'its step was not approved, so it stays',
    windowClosed: 'its window had closed before the approval, so it stays',
    approved: null,
    waitsForPerson: `waits for a person: kronos cells confirm|revert ${step?.taskId ?? ''}`,
    ended: null,
  };
  const next = ends[state];
  return [
    `plan between cells ${paint(terminal, 'bold', planId)} (${aggregate} -> ${to}), ${when(proposedAtMs, nowMs)}:\n`,
    `  ${what}\n`,
    ...events.flatMap((stored) =>
      stored.event.type === 'unreadable'
        ? []
        : [
            `  ${absolute(timeOf(stored), nowMs)}  ${authorText(stored.event)}: ${sentence(stored.event, () => serverName)}\n`,
          ],
    ),
    next === null ? '' : `  ${paint(terminal, 'yellow', next)}\n`,
  ].join('');
}

/** A released move that has not ended is assumed to be done, and must not be told as a fact. */
const assumedText = ({ host, tasks }: Assumed): string =>
  `assumed on ${host} by ${tasks
    .map(
      ({ taskId, startedAt }) =>
        `task ${taskId}, ${startedAt === null ? 'not started yet' : `started at ${startedAt}`}`,
    )
    .join(' and ')}`;

/** The moves of the last day that failed because of the host. */
function failureLines({ snapshot }: Explained, failures: readonly HostFailure[], nowMs: number): string {
  const names = new Map(snapshot?.servers.map((server) => [server.id, server.name]));
  return failures
    .map(({ atMs, data: { serverId, from, taskId, errorType, reason } }) => {
      const move = `the move of ${names.get(serverId) ?? serverId} from ${from}`;
      return `it failed ${move}, ${when(atMs, nowMs)} (${taskId}): ${errorType}: ${reason.text}\n`;
    })
    .join('');
}

/** The VMs of a host, the heaviest first, with why they do not move. */
const vmTable = (
  terminal: Terminal,
  vms: NonNullable<ReturnType<NonNullable<Explained['explanation']>['host']>>['vms'],
  names: ReadonlyMap<string, string>,
): string =>
  table(
    terminal,
    [
      { head: 'vm', flex: true },
      { head: 'weight', flex: true },
      { head: '', flex: true },
    ],
    vms.map((vm): Cell[] => [
      names.get(vm.serverId) ?? vm.serverId,
      values(vm.weights),
      vm.assumed !== null
        ? { text: `on ${vm.assumed.observed}, ${assumedText(vm.assumed)}`, style: 'dim' }
        : vm.refusal === null
          ? ''
          : { text: meaningOf(vm.refusal), style: 'dim' },
    ]),
  );

const rankText = (rank: Readonly<Record<string, number>> | null, hosts: number): string =>
  rank === null
    ? ''
    : `; place among ${hosts} hosts: ${Object.entries(rank)
        .map(([policy, place]) => `${policy} ${place}`)
        .join(', ')}`;

function destinationText(refusal: HostExplanation['refusal']): string {
  if (refusal === null) return 'it may be a destination\n';
  const { reason } = refusal.detail;
  return `it may not be a destination: ${clause(meaningOf(refusal.code))}${reason === undefined ? '' : ` (${reason})`}\n`;
}

function hostText(terminal: Terminal, explained: Explained, name: string): string {
  const { explanation, decision, snapshot } = explained;
  const damaged = damagedLines(terminal, explained, ({ from, destination }) => from === name || destination === name);
  const steps = decision.plan?.steps ?? [];
  const host = explanation?.host(name) ?? null;
  const moves = steps
    .filter((step) => step.from === name || step.to === name)
    .map(
      (step) =>
        `step ${step.step}: ${step.serverName} ${step.to === name ? `arrives from ${step.from}` : `leaves for ${step.to}`}\n`,
    )
    .join('');
  if (host === null) return `${damaged}${moves === '' ? 'The decision does not mention it.\n' : moves}`;
  const names = new Map(snapshot?.servers.map((server) => [server.id, server.name]));
  const heaviest = host.vms.toSorted((a, b) => sum(b.weights) - sum(a.weights));
  return [
    destinationText(host.refusal),
    `${values(host.before)}${moves === '' ? '' : `; with the plan ${values(host.after)}`}${rankText(host.rank, snapshot?.hosts.length ?? 0)}\n`,
    `free: ${Object.entries(host.free)
      .map(([resource, amount]) => `${resource} ${figure(amount, 1)}`)
      .join(', ')}\n`,
    host.evacuation === null ? '' : `evacuation: ${host.evacuation.state}, ${count(host.evacuation.left, 'VM')} left\n`,
    damaged,
    host.drainRefusal === null ? '' : `not drained: ${clause(meaningOf(host.drainRefusal))}\n`,
    moves,
    ...host.assumedGone.map((gone) => `${names.get(gone.serverId) ?? gone.serverId} is here, ${assumedText(gone)}\n`),
    '\n',
    heaviest.length === 0
      ? 'It holds no VM, assuming that all released moves are done.\n'
      : vmTable(terminal, heaviest, names),
  ].join('');
}

const sum = (weights: ByPolicy): number => Object.values(weights).reduce((total, value) => total + value, 0);
