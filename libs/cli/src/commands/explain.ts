import { didYouMean } from '@kronos/config/nearest';
import { clause, count, decisionWords, type Snapshot, timeMs } from '@kronos/contracts';
import { someOf } from '@kronos/operator/scope';
import { momentText, startable } from '@kronos/projections';
import {
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
  NotOnTheLog,
  type WantedDecision,
} from '@kronos/replay';
import { ratioText } from '@kronos/status';
import { UsageError } from '../errors.ts';
import { cycleText } from '../explain/cycle.ts';
import { failureLines, hostText } from '../explain/host.ts';
import { calibrationText, planText, stepText, stepTimes } from '../explain/plan.ts';
import { cellStoryText, mentions, vmText } from '../explain/vm.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { withSession } from '../open.ts';
import { answer } from '../output.ts';
import { reasonLine } from '../plans/decision.ts';
import { proposalText } from '../plans/proposal.ts';
import { openRecording, tellProblems } from '../recordings.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';
import { absolute, parseTime, said, when } from '../times.ts';

export type ExplainOptions = ConfigOption &
  OutputOption &
  AggregateOption & { readonly at?: string; readonly in?: string; readonly step?: readonly number[] };

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

/** The result of a past decision, in one line. */
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
    // A VM with moves between cells was deleted, or its aggregate is no longer in scope.
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
