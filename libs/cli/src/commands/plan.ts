import {
  type CompleteEngineOptions,
  clause,
  count,
  type Decision,
  decisionWords,
  defaultEngineOptions,
  type Snapshot,
  type Step,
  snapshotSchema,
  timeMs,
} from '@kronos/contracts';
import { defaultSearchThreads, runCycle, searchThreads } from '@kronos/cycle';
import {
  type ClusterFile,
  ClusterFileError,
  meaningOf,
  type PlanClusterOptions,
  type PlannedCluster,
  planCluster,
} from '@kronos/placement';
import type { CarryOut } from '@kronos/placement/runs';
import { aggregateState, initialLogState, seed } from '@kronos/projections';
import { UsageError } from '../errors.ts';
import type { OutputOption } from '../grammar/shared.ts';
import { figure } from '../numbers.ts';
import { answer } from '../output.ts';
import { courseLine, failoverLine, possible, reasonLine, refusals, troublesOf } from '../plans/decision.ts';
import { brokenGroupsLine, leftInFile } from '../plans/leftAlone.ts';
import { isEvidence } from '../recordings.ts';
import type { Shell } from '../shell.ts';
import { type Cell, STEP_COLUMNS, stepCells, table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { jsonIn, overridesOf, readCooldownsFile, readText, settingsOf } from './inputs.ts';

export type PlanOptions = OutputOption & {
  readonly cluster?: string;
  readonly snapshot?: string;
  readonly maxMigrations?: number;
  readonly mode?: 'spread' | 'pack';
  readonly planner?: string;
  readonly set?: string[];
  readonly cooldowns?: string;
};

/** kronos plan: decides on a file. */
export async function planOffline(shell: Shell, options: PlanOptions): Promise<void> {
  if ((options.cluster === undefined) === (options.snapshot === undefined))
    throw new UsageError(
      'give --cluster FILE or --snapshot FILE',
      'kronos plan --help has examples; kronos plan show prints a plan of the log.',
    );
  if (options.cluster === undefined && options.mode !== undefined)
    throw new UsageError('--mode needs --cluster', 'The policies of a snapshot have their modes.');
  if (options.snapshot === undefined && options.cooldowns !== undefined)
    throw new UsageError('--cooldowns needs --snapshot', 'A cluster file has no cooldowns.');
  if (options.cluster !== undefined) await planClusterFile(shell, options, options.cluster);
  else if (options.snapshot !== undefined) await planSnapshotFile(shell, options, options.snapshot);
}

/** Plans with as many threads as a planner has by default. */
async function onThreads<T>(plan: (carryOut: CarryOut) => T): Promise<T> {
  const threads = searchThreads(defaultSearchThreads());
  try {
    return plan(threads.carryOut);
  } finally {
    await threads.close();
  }
}

async function planClusterFile(shell: Shell, options: PlanOptions, file: string): Promise<void> {
  if (options.maxMigrations === undefined)
    throw new UsageError('--cluster needs --max-migrations', 'Set the maximum number of moves: -k 20.');
  const cluster = jsonIn('--cluster', file, readText('--cluster', file));
  const started = performance.now();
  const given = {
    maxMigrations: options.maxMigrations,
    ...(options.mode === undefined ? {} : { mode: options.mode }),
    ...overridesOf(settingsOf(options)),
  };
  const planned = await onThreads((carryOut) => planCluster(cluster, given, carryOut)).catch((error: unknown) => {
    if (!(error instanceof ClusterFileError)) throw error;
    throw new UsageError(
      `${file}: ${error.message}`,
      'docs/cli.md, "The cluster file", has an example and the schema of all fields.',
    );
  });
  const planMs = Math.round((performance.now() - started) * 10) / 10;
  await answer(shell, options, { ...planned, stats: { planMs, ...planned.stats } }, (terminal) =>
    renderCluster(terminal, planned, { planMs, options: given, file: cluster as ClusterFile }),
  );
}

type Given = {
  readonly planMs: number;
  readonly options: Pick<PlanClusterOptions, 'mode' | 'enforceHardAffinity' | 'evacuateDisabledHosts'>;
  /** The file that it is a plan for. */
  readonly file: ClusterFile;
};

export function renderCluster(terminal: Terminal, planned: PlannedCluster, given: Given): string {
  const { moves, before, after } = planned;
  const lines = [
    `${count(moves.length, 'move')}, planned in ${figure(given.planMs, 1)} ms; combined imbalance ${figure(before.combined)} -> ${figure(after.combined)}${possible(planned)}`,
    `by policy: ${Object.entries(before.perPolicy)
      .map(([name, value]) => `${name} ${figure(value)} -> ${figure(after.perPolicy[name] ?? null)}`)
      .join(', ')}`,
  ];
  if (planned.course !== null) lines.push(courseLine({ ...planned.course, costGib: planned.course.cost }));
  const troubles = `${troublesOf(planned)}${leftInFile(given.file, moves, given.options)}`;
  if (moves.length === 0)
    return `${[...lines, ...whyNothing(planned, given)].join('\n')}\n${troubles}${refusals(planned.stats.refusals)}`;
  const rows = moves.map((move): Cell[] => [
    ...stepCells({ ...move, serverName: move.vm }),
    move.parking ? `${move.phase}, parks` : move.phase,
    move.dependsOn.join(', '),
    move.alternates.join(', '),
  ]);
  return `${lines.join('\n')}\n\n${table(
    terminal,
    [
      ...STEP_COLUMNS,
      { head: 'phase', minor: true },
      { head: 'after', sparse: true },
      { head: 'or to', flex: true, sparse: true, below: true },
    ],
    rows,
  )}${troubles}`;
}

/** Why no VM moves for the balance. */
function whyNothing(
  planned: PlannedCluster,
  { options: { mode }, file: { policies, thresholds, actAbove } }: Given,
): string[] {
  const { course, stats, before, evacuations, stuck, warnings } = planned;
  if (course !== null)
    return [
      `The smallest part of the course has ${count(course.needed, 'move')}: set --max-migrations to ${course.needed} or more.`,
    ];
  if (mode === 'pack') return [meaningOf('no-drain')];
  const above = policies.flatMap((name, p) => ((before.perPolicy[name] ?? 0) > (thresholds?.[p] ?? 0) ? [p] : []));
  if (above.length === 0) return evacuations.length + stuck.length + warnings.length > 0 ? [] : [meaningOf('balanced')];
  if (planned.shareOfPossible === null && above.some((p) => (actAbove?.[p] ?? 0) > 0))
    return [meaningOf('no-contention')];
  return [meaningOf(stats.endedBy === 'work' ? 'search-limit' : 'no-improvement')];
}

const SNAPSHOTS = 'kronos record --to DIRECTORY writes them to DIRECTORY/snapshots/AGGREGATE.';

/** The snapshot in a file; of evidence, the last one. @throws UsageError, EvidenceInvalid */
async function snapshotIn(file: string): Promise<unknown> {
  const text = readText('--snapshot', file, SNAPSHOTS);
  if (!isEvidence(file)) return jsonIn('--snapshot', file, text);
  const { EvidenceInvalid, readEvidence, snapshotsIn } = await import('@kronos/evidence');
  const { evidence, problems } = readEvidence(file, text);
  if (evidence === null || problems.length > 0) throw new EvidenceInvalid(file, problems.join('; '));
  return snapshotsIn(file, evidence).at(-1)?.body;
}

async function planSnapshotFile(shell: Shell, options: PlanOptions, file: string): Promise<void> {
  const parsed = snapshotSchema.safeParse(await snapshotIn(file));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UsageError(`${file} is no snapshot: ${issue?.path.join('.')}: ${issue?.message}`, SNAPSHOTS);
  }
  const snapshot: Snapshot = {
    ...parsed.data,
    purpose: 'command',
    policies: parsed.data.policies.map((policy) =>
      options.maxMigrations === undefined ? policy : { ...policy, maxMigrationsPerCycle: options.maxMigrations },
    ),
  };
  const engine: CompleteEngineOptions = { ...defaultEngineOptions, ...overridesOf(settingsOf(options)) };
  const nowMs = timeMs(snapshot.time);
  const cooldowns = options.cooldowns === undefined ? null : readCooldownsFile(options.cooldowns);
  const start = initialLogState();
  const state =
    cooldowns === null ? start : seed(start, cooldowns, { nowMs, aggregates: [snapshot.aggregate], options: engine });
  const input = { snapshot, state: aggregateState(state, snapshot.aggregate), options: engine };
  const { decision } = await onThreads((carryOut) => runCycle(input, carryOut));
  await answer(shell, options, decision, (terminal) =>
    renderDecision(terminal, decision, brokenGroupsLine(snapshot, engine)),
  );
}

/** A decision that was made here and now. @param leftAlone what it leaves as it is, because the options say so */
function renderDecision(terminal: Terminal, decision: Decision, leftAlone: string): string {
  const { plan, before } = decision;
  const head = `${decisionWords[decision.outcome]}: ${clause(decision.reason.text)}\ncombined imbalance ${figure(before.combined)}${
    plan === null ? '' : ` -> ${figure(plan.after.combined)}${possible(plan)}`
  }\n${decision.course === undefined ? '' : `${courseLine(decision.course)}\n`}${failoverLine(decision)}`;
  return `${head}${plan === null ? '' : `\n${stepsTable(terminal, plan.steps)}`}${troublesOf(decision)}${leftAlone}${refusals(decision.refusals)}`;
}

const stepsTable = (terminal: Terminal, steps: readonly Step[]): string =>
  table(
    terminal,
    [...STEP_COLUMNS, { head: 'phase', minor: true }, { head: 'why', flex: true, below: true }],
    steps.map((step) => [...stepCells(step), step.phase, step.why === undefined ? '' : reasonLine(step.why)]),
  );
