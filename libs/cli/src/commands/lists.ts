import { didYouMean } from '@kronos/config/nearest';
import {
  byText,
  DAY_MS,
  type HostObservation,
  type Phase,
  type ServerListing,
  type ServerObservation,
  type Snapshot,
  timeMs,
} from '@kronos/contracts';
import { serviceText } from '@kronos/facts';
import { CommandRefused } from '@kronos/operator/errors';
import { someOf } from '@kronos/operator/scope';
import { aggregateState, inFlight, type LogState, optionsOf, quarantined, type TaskFacts } from '@kronos/projections';
import { type History, newestSnapshots, plansOf } from '@kronos/replay';
import { serverWindow, type TimeZoneRules } from '@kronos/rules';
import { type AggregateStatus, ratioText, statusOf } from '@kronos/status';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { aligned, figure } from '../numbers.ts';
import { currentState, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { readFacts } from '../status/facts.ts';
import { type Cell, table } from '../table.ts';
import type { Style, Terminal } from '../terminal.ts';
import { absolute, said, when } from '../times.ts';

export type ListOptions = ConfigOption & OutputOption & AggregateOption;
/** Every list takes the same filters. */
export type VmsOptions = ListOptions & { readonly host?: readonly string[]; readonly vm?: string };
export type TasksOptions = VmsOptions & { readonly ended?: boolean };

/** Whether `--vm` names a server, or is not given. */
const isVm = ({ vm }: VmsOptions, { id, name }: { readonly id: string; readonly name: string }): boolean =>
  vm === undefined || vm === name || vm.toLowerCase() === id;

const isHost = ({ host }: VmsOptions, ...names: readonly string[]): boolean =>
  host === undefined || names.some((name) => host.includes(name));

/** @throws CommandRefused for a host that no snapshot has */
function requireHosts({ host }: VmsOptions, snapshots: readonly Snapshot[]): void {
  const known = snapshots.flatMap(({ hosts }) => hosts.map(({ name }) => name));
  if (known.length === 0) return;
  for (const name of host ?? [])
    if (!known.includes(name))
      throw new CommandRefused(
        `no host ${JSON.stringify(name)}`,
        `${didYouMean(name, known)}The hosts are ${someOf(known.toSorted(), 'kronos hosts')}.`,
      );
}

/** @throws CommandRefused for a VM that no snapshot has */
function requireVm(options: VmsOptions, snapshots: readonly Snapshot[]): void {
  const known = snapshots.flatMap(({ servers }) => servers);
  if (options.vm === undefined || known.length === 0 || known.some((server) => isVm(options, server))) return;
  const near = didYouMean(
    options.vm,
    known.map(({ name }) => name),
  );
  throw new CommandRefused(
    `no VM ${JSON.stringify(options.vm)} in the newest snapshots`,
    `${near}kronos vms lists them.`,
  );
}

/** kronos aggregates. */
export async function listAggregates(shell: Shell, options: ListOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    const wanted = filterAggregates(session.scope, options.aggregate);
    const facts = await readFacts(shell, session);
    const rows = statusOf(facts).aggregates.filter(({ aggregate }) => wanted.includes(aggregate));
    await answer(shell, options, rows, (terminal) => aggregatesTable(terminal, rows, shell.now()));
  });
}

const aggregatesTable = (terminal: Terminal, rows: readonly AggregateStatus[], nowMs: number): string =>
  table(
    terminal,
    [
      { head: 'aggregate', flex: true },
      { head: 'doing', flex: true },
      { head: 'hosts', right: true, minor: true },
      { head: 'vms', right: true, minor: true },
      { head: 'moves', right: true, minor: true },
      { head: 'ratio', right: true },
      { head: 'imbalance', right: true, minor: true },
      { head: 'last look', minor: true },
      { head: 'policies', wide: true },
    ],
    rows.map(({ aggregate, doing, lastLook, lastDecision, moves, policies, ratio }) => [
      aggregate,
      said(doing, nowMs),
      lastLook === null ? '' : String(lastLook.hosts),
      lastLook === null ? '' : String(lastLook.servers),
      String(moves.length),
      ratio !== null && ratio > 1 ? { text: ratioText(ratio), style: 'yellow' } : ratioText(ratio),
      figure(lastDecision?.combined ?? null),
      lastLook === null ? 'never' : when(lastLook.timeMs, nowMs),
      policies.map(({ policy, imbalance, threshold }) => `${policy} ${figure(imbalance)} of ${threshold}`).join(', '),
    ]),
  );

/** One host as the newest snapshot of its aggregate has it. */
type HostRow = {
  readonly aggregate: string;
  readonly host: string;
  readonly service: string;
  readonly availabilityZone: string | null;
  readonly servers: number;
  /** By policy: the raw value; null without one. */
  readonly values: Readonly<Record<string, number | null>>;
  readonly freeVcpus: number | null;
  readonly freeRamMb: number | null;
  /** Where the list of its servers came from; null: not known. */
  readonly listing: ServerListing | null;
  readonly snapshotTimeMs: number;
};

/** kronos hosts. */
export async function listHosts(shell: Shell, options: VmsOptions): Promise<void> {
  await withSession(shell, options, async ({ log, scope }) => {
    const snapshots = await newestSnapshots(log, filterAggregates(scope, options.aggregate));
    requireHosts(options, snapshots);
    requireVm(options, snapshots);
    const rows = snapshots.flatMap((snapshot) => {
      const of = new Set(snapshot.servers.filter((server) => isVm(options, server)).map(({ host }) => host));
      return hostRows(snapshot).filter(
        ({ host }) => isHost(options, host) && (options.vm === undefined || of.has(host)),
      );
    });
    await answer(shell, options, rows, (terminal) => hostsTable(terminal, rows, shell.now()));
  });
}

const free = ({ inventory }: HostObservation, resource: string): number | null => {
  const counted = inventory?.[resource];
  return counted === undefined ? null : counted.capacity - counted.used;
};

const serviceLine = (service: HostObservation['service']): string =>
  service.disabledReason === null ? serviceText(service) : `${serviceText(service)}: ${service.disabledReason}`;

function hostRows({ aggregate, hosts, servers, scores, time }: Snapshot): HostRow[] {
  const residents = Map.groupBy(servers, (server) => server.host);
  return hosts
    .map((host) => ({
      aggregate,
      host: host.name,
      service: serviceLine(host.service),
      availabilityZone: host.availabilityZone,
      servers: residents.get(host.name)?.length ?? 0,
      values: Object.fromEntries(scores.policies.map(({ policy, hosts: of }) => [policy, of[host.name]?.raw ?? null])),
      freeVcpus: free(host, 'VCPU'),
      freeRamMb: free(host, 'MEMORY_MB'),
      listing: host.listing ?? null,
      snapshotTimeMs: timeMs(time),
    }))
    .sort((a, b) => byText(a.host, b.host));
}

function hostsTable(terminal: Terminal, rows: readonly HostRow[], nowMs: number): string {
  if (rows.length === 0) return 'No snapshot yet: kronos status.\n';
  const policies = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))];
  return table(
    terminal,
    [
      { head: 'host', flex: true, host: true },
      { head: 'aggregate', flex: true, minor: rows.every(({ aggregate }) => aggregate === rows[0]?.aggregate) },
      { head: 'service', flex: true },
      { head: 'vms', right: true },
      ...policies.map((head) => ({ head, right: true })),
      { head: 'vcpus free', right: true, minor: true },
      { head: 'MiB free', right: true, minor: true },
      { head: 'zone', wide: true },
      { head: 'list', wide: true },
      { head: 'checked', wide: true },
      { head: 'seen', wide: true },
    ],
    rows.map((row): Cell[] => [
      row.host,
      row.aggregate,
      row.service === 'enabled' ? row.service : { text: row.service, style: 'yellow' },
      String(row.servers),
      ...policies.map((policy) => aligned(row.values[policy] ?? null)),
      figure(row.freeVcpus),
      figure(row.freeRamMb, 0),
      row.availabilityZone ?? '',
      row.listing?.from ?? '',
      row.listing === null ? '' : when(timeMs(row.listing.checkedAt), nowMs),
      when(row.snapshotTimeMs, nowMs),
    ]),
  );
}

type VmRow = {
  readonly aggregate: string;
  readonly name: string;
  readonly id: string;
  /** Null: Nova does not say. */
  readonly projectId: string | null;
  readonly host: string;
  readonly status: string;
  /** The reasons that keep it on its host; empty where none is known without a decision. */
  readonly held: string;
  readonly flavor: string | null;
  readonly vcpus: number;
  readonly ramMb: number;
};

/** kronos vms. */
export async function listVms(shell: Shell, options: VmsOptions): Promise<void> {
  await withSession(shell, options, async ({ log, scope }) => {
    const snapshots = await newestSnapshots(log, filterAggregates(scope, options.aggregate));
    requireHosts(options, snapshots);
    requireVm(options, snapshots);
    const state = await currentState(shell, log);
    const rows = snapshots
      .flatMap(({ aggregate, servers }) => vmRows(state, aggregate, servers, shell.now()))
      .filter((row) => isHost(options, row.host) && isVm(options, row))
      .sort((a, b) => byText(a.name, b.name));
    await answer(shell, options, rows, (terminal) => vmsTable(terminal, rows));
  });
}

function vmRows(state: LogState, aggregate: string, servers: readonly ServerObservation[], nowMs: number): VmRow[] {
  const facts = aggregateState(state, aggregate);
  const options = optionsOf(facts);
  const moving = new Map(inFlight(facts).map((task) => [task.step.serverId, task]));
  return servers.map((server) => {
    const { id, name, projectId, host, status, flavor, vcpus, ramMb, locked, optedOutBy, windows, taskState } = server;
    const task = moving.get(id);
    const quarantine = quarantined(facts, id, nowMs, options);
    const held = [
      ...(task === undefined ? [] : [`moves to ${task.destination}`]),
      ...(quarantine === null ? [] : [`quarantined by ${quarantine.by}`]),
      ...(optedOutBy === null ? [] : [`excluded by ${optedOutBy}`]),
      ...(windows === undefined ? [] : [ownWindow(windows, options.timezone, nowMs)]),
      ...(locked ? ['locked'] : []),
      ...(taskState === null ? [] : [taskState]),
    ].join(', ');
    return { aggregate, name, id, projectId, host, status, held, flavor, vcpus, ramMb };
  });
}

/** A VM's own windows, and whether one is open now. */
export function ownWindow(windows: readonly string[], timezone: TimeZoneRules, nowMs: number): string {
  const only = `only ${windows.join(', ')}`;
  const now = serverWindow(windows, timezone, nowMs);
  switch (now.kind) {
    case 'open':
      return only;
    case 'closed':
      return `${only} (closed${now.untilMs === null ? '' : ` until ${absolute(now.untilMs, nowMs)}`})`;
    case 'unreadable':
      return `window cannot be read: ${now.problem}`;
  }
}

function vmsTable(terminal: Terminal, rows: readonly VmRow[]): string {
  if (rows.length === 0) return 'No VM: kronos status shows whether there is a snapshot.\n';
  return table(
    terminal,
    [
      { head: 'vm', flex: true },
      { head: 'uuid', short: 8 },
      { head: 'host', flex: true, host: true },
      { head: 'aggregate', flex: true, minor: true },
      { head: 'status', minor: true },
      { head: 'held by', flex: true, sparse: true, below: true },
      { head: 'project', wide: true },
      { head: 'flavor', wide: true },
      { head: 'vcpus', right: true, wide: true },
      { head: 'MiB', right: true, wide: true },
    ],
    rows.map((row): Cell[] => [
      row.name,
      row.id,
      row.host,
      row.aggregate,
      row.status,
      row.held,
      row.projectId ?? '',
      row.flavor ?? '',
      String(row.vcpus),
      String(row.ramMb),
    ]),
  );
}

const taskStyles: Readonly<Partial<Record<TaskFacts['status'], Style>>> = {
  started: 'cyan',
  completed: 'green',
  failed: 'red',
  retryPending: 'yellow',
};

/** kronos tasks. */
export async function listTasks(shell: Shell, options: TasksOptions): Promise<void> {
  await withSession(shell, options, async ({ log, history, scope }) => {
    const state = await currentState(shell, log);
    const aggregates = filterAggregates(scope, options.aggregate);
    const known = aggregates.flatMap((aggregate) =>
      [...aggregateState(state, aggregate).tasks.values()].map((task) => taskRow(aggregate, task)),
    );
    const rows = [...(options.ended === true ? await endedRows(history, aggregates, known, shell.now()) : []), ...known]
      .filter((row) => options.ended === true || row.endedAtMs === null)
      .filter((row) => isHost(options, row.from, row.to))
      .filter((row) => isVm(options, { id: row.serverId, name: row.serverName }));
    await answer(shell, options, rows, (terminal) => tasksTable(terminal, rows, options.ended === true, shell.now()));
  });
}

/** Tasks of a day whose plans have left the state, by the log. */
async function endedRows(
  history: History,
  aggregates: readonly string[],
  known: readonly TaskRow[],
  nowMs: number,
): Promise<TaskRow[]> {
  const here = new Set(known.map(({ id }) => id));
  const plans = await plansOf(history.events(), { aggregates, sinceMs: nowMs - DAY_MS });
  return plans
    .flatMap((plan) => plan.steps.map((step) => ({ plan, step })))
    .flatMap(({ plan, step }): TaskRow[] =>
      step.ended === null || here.has(step.taskId)
        ? []
        : [
            {
              aggregate: plan.aggregate,
              id: step.taskId,
              planId: plan.id,
              serverName: step.serverName,
              serverId: step.serverId,
              from: step.from,
              to: step.destination ?? step.to,
              phase: step.phase,
              status: step.ended,
              attempt: step.attempt ?? 1,
              startedAtMs: null,
              endedAtMs: step.endedAtMs,
              problem: step.state === 'completed' || step.note === '' ? null : step.note,
            },
          ],
    )
    .sort((a, b) => (a.endedAtMs ?? 0) - (b.endedAtMs ?? 0));
}

type TaskRow = {
  readonly aggregate: string;
  readonly id: string;
  readonly planId: string;
  readonly serverName: string;
  readonly serverId: string;
  readonly from: string;
  readonly to: string;
  readonly phase: Phase;
  readonly status: TaskFacts['status'];
  readonly attempt: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly problem: string | null;
};

const taskRow = (aggregate: string, task: TaskFacts): TaskRow => ({
  aggregate,
  id: task.id,
  planId: task.planId,
  serverName: task.step.serverName,
  serverId: task.step.serverId,
  from: task.step.from,
  to: task.destination,
  phase: task.step.phase,
  status: task.status,
  attempt: task.attempt,
  startedAtMs: task.slot?.startedAtMs ?? null,
  endedAtMs: task.end?.atMs ?? null,
  problem: task.lastFailure?.reason.text ?? null,
});

function tasksTable(terminal: Terminal, rows: readonly TaskRow[], ended: boolean, nowMs: number): string {
  if (rows.length === 0)
    return ended
      ? 'No task is in flight, and none has ended within a day.\n'
      : 'No task is in flight. kronos tasks --ended lists those of the last day.\n';
  const times = (row: TaskRow): string =>
    row.endedAtMs !== null
      ? `ended ${when(row.endedAtMs, nowMs)}`
      : row.startedAtMs !== null
        ? `since ${when(row.startedAtMs, nowMs)}`
        : '';
  return table(
    terminal,
    [
      { head: 'task', minor: true, below: true },
      { head: 'vm', flex: true },
      { head: 'uuid', wide: true },
      { head: 'from', flex: true, host: true },
      { head: 'to', flex: true, host: true },
      { head: 'status' },
      { head: 'attempt', right: true, minor: true },
      { head: 'when', minor: true },
      { head: 'problem', flex: true, sparse: true, below: true },
    ],
    rows.map((row): Cell[] => {
      const style = taskStyles[row.status];
      return [
        row.id,
        row.serverName,
        row.serverId,
        row.from,
        row.to,
        style === undefined ? row.status : { text: row.status, style },
        String(row.attempt),
        times(row),
        row.problem ?? '',
      ];
    }),
  );
}
