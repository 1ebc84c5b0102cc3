import {
  type CompleteEngineOptions,
  type Course,
  clause,
  count,
  type Decision,
  decisionWords,
  defaultEngineOptions,
  failoverText,
  foreignText,
  type Reason,
  type Snapshot,
  type Step,
  type Stuck,
  snapshotSchema,
  timeMs,
} from '@kronos/contracts';
import { defaultSearchThreads, runCycle, searchThreads } from '@kronos/cycle';
import { ClusterFileError, meaningOf, type PlannedCluster, planCluster, valueAfter } from '@kronos/placement';
import type { CarryOut } from '@kronos/placement/runs';
import { aggregateState, initialLogState, seed } from '@kronos/projections';
import { NotOnTheLog, type PlanRecord, plansOf, type StepRecord } from '@kronos/replay';
import { courseEnd, courseTime } from '@kronos/status';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { aligned, figure, gibText, wholePercent } from '../numbers.ts';
import { withSession } from '../open.ts';
import { answer } from '../output.ts';
import { isEvidence } from '../recordings.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { type Cell, STEP_COLUMNS, stepCells, table, waitsFor } from '../table.ts';
import { paint, type Style, type Terminal } from '../terminal.ts';
import { absolute, estimated, partOfRange, relative, when } from '../times.ts';
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

export type PlansOptions = ConfigOption & OutputOption & AggregateOption & { readonly since: string };

/** kronos plans. */
export async function plans(shell: Shell, options: PlansOptions): Promise<void> {
  const range = partOfRange(options, shell.now());
  await withSession(shell, options, async ({ history, scope }) => {
    const found = await plansOf(history.events(), {
      aggregates: filterAggregates(scope, options.aggregate),
      ...range,
    });
    await answer(shell, options, found, (terminal) => renderPlans({ ...shell, terminal }, found));
  });
}

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

/** kronos plan show. */
export async function planShow(
  shell: Shell,
  id: string | undefined,
  options: Omit<PlansOptions, 'since'>,
): Promise<void> {
  await withSession(shell, options, async ({ history, scope }) => {
    const found = await plansOf(
      history.events(),
      { aggregates: filterAggregates(scope, options.aggregate) },
      (planId) => id === undefined || planId === id,
    );
    const record = found.at(-1);
    if (record === undefined)
      throw new NotOnTheLog(
        id === undefined ? 'the log has no plan yet' : `the log has no plan ${JSON.stringify(id)}`,
        'kronos plans --since all lists every plan; kronos explain cycle shows why there is no plan.',
        { named: id !== undefined },
      );
    await answer(shell, options, record, (terminal) => renderPlan({ ...shell, terminal }, record));
  });
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
    renderCluster(terminal, planned, { planMs, mode: given.mode, file: cluster as Given['file'] }),
  );
}

type Given = {
  readonly planMs: number;
  readonly mode?: 'spread' | 'pack' | undefined;
  /** The file that it is a plan for. */
  readonly file: {
    readonly policies: readonly string[];
    readonly thresholds?: readonly number[];
    readonly actAbove?: readonly number[];
  };
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
  const troubles = troublesOf(planned);
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
function whyNothing(planned: PlannedCluster, { mode, file: { policies, thresholds, actAbove } }: Given): string[] {
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

/** How near a plan comes to the best one. @param any what it is compared with: `plan`, `10 moves` */
export const possible = (
  { lowerBound, shareOfPossible }: Pick<PlanRecord, 'lowerBound' | 'shareOfPossible'>,
  any = 'plan',
): string =>
  shareOfPossible === null
    ? ''
    : `, ${wholePercent(shareOfPossible)} of what any ${any} could gain${lowerBound === null ? '' : ` (none can go below ${figure(lowerBound)})`}`;

/** The snapshot in a file; of evidence, the last one. @throws UsageError, EvidenceInvalid */
async function snapshotIn(file: string): Promise<unknown> {
  const text = readText('--snapshot', file);
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
    throw new UsageError(
      `${file} is no snapshot: ${issue?.path.join('.')}: ${issue?.message}`,
      'kronos record --to DIRECTORY writes snapshots.',
    );
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
  await answer(shell, options, decision, (terminal) => renderDecision(terminal, decision));
}

/** A decision that was made here and now. */
function renderDecision(terminal: Terminal, decision: Decision): string {
  const { plan, before } = decision;
  const head = `${decisionWords[decision.outcome]}: ${clause(decision.reason.text)}\ncombined imbalance ${figure(before.combined)}${
    plan === null ? '' : ` -> ${figure(plan.after.combined)}${possible(plan)}`
  }\n${decision.course === undefined ? '' : `${courseLine(decision.course)}\n`}${failoverLine(decision)}`;
  return `${head}${plan === null ? '' : `\n${stepsTable(terminal, plan.steps)}`}${troublesOf(decision)}${refusals(decision.refusals)}`;
}

/** What could not be done: VMs that stay, evacuations that have not ended, warnings. */
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

/** What is left of a course: its moves, and where the cycles are known, about their time. */
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

/** A reason with its figures. */
export function reasonLine({ text, detail }: Reason): string {
  const facts = Object.entries(detail ?? {}).flatMap(([key, value]) => factsOf(words(key), value));
  if (facts.length === 0) return text;
  const stop = text.endsWith('.') ? '.' : '';
  return `${stop === '' ? text : text.slice(0, -1)} (${facts.join(', ')})${stop}`;
}

/** `fromZone`: `from zone`. */
const words = (key: string): string => key.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** A figure, a text, or counts by code. */
function factsOf(name: string, value: unknown): string[] {
  if (typeof value === 'number') return [`${name} ${figure(value)}`];
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

const stepsTable = (terminal: Terminal, steps: readonly Step[]): string =>
  table(
    terminal,
    [...STEP_COLUMNS, { head: 'phase', minor: true }, { head: 'why', flex: true, below: true }],
    steps.map((step) => [...stepCells(step), step.phase, step.why === undefined ? '' : reasonLine(step.why)]),
  );

const outcomeStyles: Readonly<Record<PlanRecord['outcome'], Style>> = {
  dryRun: 'dim',
  outsideWindow: 'dim',
  waiting: 'yellow',
  running: 'cyan',
  done: 'green',
  rejected: 'red',
  expired: 'yellow',
  superseded: 'dim',
  withdrawn: 'dim',
};
const outcomeWords: Readonly<Record<PlanRecord['outcome'], string>> = {
  dryRun: 'dry run',
  outsideWindow: 'outside window',
  waiting: 'waits for approval',
  running: 'running',
  done: 'done',
  rejected: 'rejected',
  expired: 'expired',
  superseded: 'replaced',
  withdrawn: 'withdrawn',
};

function renderPlans({ terminal, now }: Pick<Shell, 'terminal' | 'now'>, records: readonly PlanRecord[]): string {
  if (records.length === 0) return 'No plan in that time. kronos explain cycle shows why.\n';
  const ends = (
    [
      { head: 'warned', state: 'warned', style: 'yellow' },
      { head: 'in ERROR', state: 'damaged', style: 'red' },
    ] as const
  ).filter(({ state }) => records.some(({ steps }) => steps.some((s) => s.state === state)));
  return table(
    terminal,
    [
      { head: 'plan' },
      { head: 'aggregate', flex: true, minor: records.every(({ aggregate }) => aggregate === records[0]?.aggregate) },
      { head: 'decided', minor: true },
      { head: '', minor: true },
      { head: 'outcome', flex: true },
      { head: 'moves', right: true },
      { head: 'failed', right: true, minor: records.every(({ steps }) => steps.every((s) => s.state !== 'failed')) },
      ...ends.map(({ head }) => ({ head, right: true })),
      { head: 'imbalance', right: true, minor: true },
      { head: 'of possible', right: true, minor: true },
    ],
    records.map((plan) => {
      const completed = plan.steps.filter((s) => s.state === 'completed' || s.state === 'warned').length;
      const failed = plan.steps.filter((s) => s.state === 'failed').length;
      const released = plan.steps.filter((s) => s.state !== 'rejected' && s.state !== 'letGo').length;
      return [
        plan.id,
        plan.aggregate,
        absolute(plan.decidedAtMs, now()),
        relative(plan.decidedAtMs, now()),
        { text: outcomeWords[plan.outcome], style: outcomeStyles[plan.outcome] },
        plan.releasedAtMs === null ? String(plan.steps.length) : `${completed} of ${released}`,
        failed === 0 ? '' : { text: String(failed), style: 'red' },
        ...ends.map(({ state, style }) => {
          const moves = plan.steps.filter((s) => s.state === state).length;
          return moves === 0 ? '' : { text: String(moves), style };
        }),
        plan.kind !== 'cycle'
          ? kindWords[plan.kind]
          : `${figure(plan.combinedBefore)} -> ${figure(plan.combinedAfter)}`,
        plan.shareOfPossible === null ? '' : wholePercent(plan.shareOfPossible),
      ];
    }),
  );
}

/** Plans that people asked for. */
const kindWords = { cells: 'between cells', capacity: 'makes room' } as const;
const kindText = { cells: 'between cells', capacity: 'that makes room for new VMs' } as const;

const stepStyles: Readonly<Partial<Record<StepRecord['state'], Style>>> = {
  completed: 'green',
  warned: 'yellow',
  damaged: 'red',
  failed: 'red',
  migrating: 'cyan',
  retrying: 'yellow',
  proposed: 'yellow',
};
const stepWords: Readonly<Record<StepRecord['state'], string>> = {
  dryRun: 'dry run',
  outsideWindow: 'outside window',
  proposed: 'proposed',
  rejected: 'rejected',
  letGo: 'dropped',
  waiting: 'waits',
  migrating: 'migrating',
  retrying: 'retrying',
  completed: 'moved',
  warned: 'moved, with warnings',
  damaged: 'server in ERROR',
  failed: 'failed',
  skipped: 'skipped',
};

export function renderPlan({ terminal, now }: Pick<Shell, 'terminal' | 'now'>, plan: PlanRecord): string {
  const nowMs = now();
  const outcome = paint(terminal, outcomeStyles[plan.outcome], outcomeWords[plan.outcome]);
  const times = [
    `decided ${when(plan.decidedAtMs, nowMs)}`,
    ...(plan.releasedAtMs === null || plan.releasedAtMs === plan.decidedAtMs
      ? []
      : [`released ${relative(plan.releasedAtMs, nowMs)}`]),
    ...(plan.endedAtMs === null ? [] : [`ended ${relative(plan.endedAtMs, nowMs)}`]),
  ];
  const head = [
    `${paint(terminal, 'bold', plan.id)} of ${plan.aggregate}: ${outcome}`,
    times.join(', '),
    plan.kind !== 'cycle'
      ? `a plan ${kindText[plan.kind]}, planner version ${plan.plannerVersion}`
      : `planner ${plan.planner}, version ${plan.plannerVersion}; combined imbalance ${figure(plan.combinedBefore)} -> ${figure(plan.combinedAfter)}${possible(plan)}`,
    ...(plan.course === null ? [] : [courseLine(plan.course)]),
    ...(plan.time === null ? [] : [`time of its moves: ${estimated(plan.time)}`]),
  ];
  const rows = plan.steps.map((step): Cell[] => {
    const style = stepStyles[step.state];
    const state = stepWords[step.state];
    return [
      ...stepCells(step),
      step.phase,
      waitsFor(step),
      style === undefined ? state : { text: state, style },
      step.note,
      step.why === undefined ? '' : reasonLine(step.why),
    ];
  });
  return `${head.join('\n')}\n\n${table(
    terminal,
    [
      ...STEP_COLUMNS,
      { head: 'phase', minor: true },
      { head: 'after', sparse: true },
      { head: 'state' },
      { head: 'what happened', flex: true, sparse: true, below: true },
      { head: 'why', flex: true, below: true },
    ],
    rows,
  )}${hostsTable(terminal, plan)}`;
}

/** The hosts that the plan changes: what they carry before it, and with every step done. Empty where the log does not say. */
function hostsTable(terminal: Terminal, { hostsBefore, steps }: PlanRecord): string {
  if (hostsBefore === null) return '';
  const { policies, hosts } = hostsBefore;
  const changed = hosts.filter(({ host }) => steps.some(({ from, to }) => from === host || to === host));
  if (changed.length === 0) return '';
  const rows = changed.map(({ host, values }): Cell[] => [
    host,
    ...policies.map((policy, i) => {
      const before = values[i] ?? null;
      if (before === null) return aligned(null);
      return `${aligned(before)} -> ${aligned(valueAfter(before, { host, policy }, steps))}`;
    }),
  ]);
  const head = [{ head: 'host', flex: true, host: true }, ...policies.map((policy) => ({ head: policy, right: true }))];
  return `\nhosts before and after:\n${table(terminal, head, rows)}`;
}
