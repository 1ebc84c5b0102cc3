/** Plans of the log and what became of them, for people. Pure. */
import { valueAfter } from '@kronos/placement';
import type { PlanRecord, StepRecord } from '@kronos/replay';
import { aligned, figure, wholePercent } from '../numbers.ts';
import type { Shell } from '../shell.ts';
import { type Cell, STEP_COLUMNS, stepCells, table, waitsFor } from '../table.ts';
import { paint, type Style, type Terminal } from '../terminal.ts';
import { absolute, estimated, relative, when } from '../times.ts';
import { courseLine, possible, reasonLine } from './decision.ts';

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

export function renderPlans(
  { terminal, now }: Pick<Shell, 'terminal' | 'now'>,
  records: readonly PlanRecord[],
): string {
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
        plan.kind === 'cycle' ? gainWords(plan) : kindWords[plan.kind],
        plan.shareOfPossible === null || endedOtherwise(plan) ? '' : wholePercent(plan.shareOfPossible),
      ];
    }),
  );
}

/** Whether a move of the plan was left out, failed, or ended on another host than planned: then the plan's predictions do not hold. */
const endedOtherwise = ({ steps, releasedAtMs }: Pick<PlanRecord, 'steps' | 'releasedAtMs'>): boolean =>
  steps.some(
    ({ state, ended, destination, to }) =>
      state === 'rejected' ||
      state === 'letGo' ||
      (state === 'outsideWindow' && releasedAtMs !== null) ||
      (ended !== null && (ended !== 'completed' || (destination ?? to) !== to)),
  );

const gainWords = (plan: PlanRecord): string =>
  endedOtherwise(plan)
    ? `${figure(plan.combinedBefore)} (planned ${figure(plan.combinedAfter)})`
    : `${figure(plan.combinedBefore)} -> ${figure(plan.combinedAfter)}`;

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
  cancelled: 'cancelled',
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
      : `planner ${plan.planner}, version ${plan.plannerVersion}; combined imbalance ${gainWords(plan)}${endedOtherwise(plan) ? '' : possible(plan)}`,
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
