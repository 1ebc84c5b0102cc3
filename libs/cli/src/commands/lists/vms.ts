import { byText, type ServerObservation } from '@kronos/contracts';
import { aggregateState, inFlight, type LogState, optionsOf, quarantined } from '@kronos/projections';
import { serverWindow, type TimeZoneRules } from '@kronos/rules';
import { currentState, withSession } from '../../open.ts';
import { answer } from '../../output.ts';
import type { Shell } from '../../shell.ts';
import { type Cell, table } from '../../table.ts';
import type { Terminal } from '../../terminal.ts';
import { absolute } from '../../times.ts';
import { isHost, isVm, listedSnapshots, type VmsOptions } from './filters.ts';

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
  await withSession(shell, options, async (session) => {
    const snapshots = await listedSnapshots(session, options);
    const state = await currentState(shell, session.log);
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
