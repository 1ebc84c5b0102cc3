import { loadConf } from '@kronos/config/conf';
import { errorText, eventTimeMs, type LogEvent, type Snapshot, some } from '@kronos/contracts';
import { decideInput } from '@kronos/cycle';
import { createLimiter } from '@kronos/observation';
import { type Advice, advise, type NovaSettings, type PastMove } from '@kronos/placement';
import { aggregateState, optionsOf } from '@kronos/projections';
import { confirmed, type HostAllocations, suspects } from '../advise/leaked.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configFile, currentState, requireSnapshots, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { ReportFold } from '../report/fold.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';
import { parseRange } from '../times.ts';

export type AdviseOptions = ConfigOption & OutputOption & AggregateOption & { readonly since: string };

type AggregateAdvice = {
  readonly aggregate: string;
  /** The parts that were not compared, and why; null when all were. */
  readonly unread: string | null;
  readonly advice: readonly Advice[];
};

/** kronos advise: what an operator could change, in Nova, in the policies or in the exporters. */
export async function adviseCommand(shell: Shell, options: AdviseOptions): Promise<void> {
  const { sinceMs } = parseRange(options, shell.now());
  const found = await withSession(shell, options, async ({ log, scope }): Promise<AggregateAdvice[]> => {
    const aggregates = filterAggregates(scope, options.aggregate);
    const snapshots = await requireSnapshots(log, aggregates);
    const [state, settings] = await Promise.all([currentState(shell, log), novaSettings(shell, options, snapshots)]);
    const report = new ReportFold({ optionsOf: (name) => optionsOf(aggregateState(state, name)) });
    const moves = new Map<string, Omit<PastMove, 'serverName'>[]>();
    const since = sinceMs === null ? 'all' : new Date(sinceMs);
    for await (const delivered of log.tail({ families: ['plans', 'results'], aggregates, since, end: true })) {
      if (delivered.problem !== undefined) continue;
      const event = delivered.message as LogEvent;
      const storedAtMs = delivered.firstStoredAt;
      report.add(event, storedAtMs);
      if (event.type !== 'migration.completed' || event.data.outcome !== 'migrated') continue;
      const { serverId, from, host } = event.data;
      const move = { serverId, from, to: host, atMs: eventTimeMs(event.time, storedAtMs) };
      moves.set(event.aggregate, [...(moves.get(event.aggregate) ?? []), move]);
    }
    const figures = new Map(report.figures().map((one) => [one.aggregate, one]));
    return snapshots.map((snapshot) => {
      const { aggregate } = snapshot;
      const names = new Map(snapshot.servers.map(({ id, name }) => [id, name]));
      const past = figures.get(aggregate);
      const input = {
        ...decideInput(aggregateState(state, aggregate), snapshot),
        history: {
          observedMs: past?.observedMs ?? 0,
          policies: past?.policies ?? [],
          moves: (moves.get(aggregate) ?? []).map((move) => ({
            ...move,
            serverName: names.get(move.serverId) ?? move.serverId,
          })),
        },
        settings: typeof settings === 'string' ? null : (settings.get(aggregate) ?? null),
      };
      return { aggregate, unread: typeof settings === 'string' ? settings : null, advice: advise(input) };
    });
  });
  await answer(shell, options, found, (terminal) => found.map((one) => render(terminal, one)).join('\n'));
}

/** Calls to Placement at a time. */
const CONCURRENCY = 8;

/** The settings of Nova and Placement, by aggregate, or the reason why they cannot be read. */
async function novaSettings(
  shell: Shell,
  options: ConfigOption,
  snapshots: readonly Snapshot[],
): Promise<ReadonlyMap<string, NovaSettings> | string> {
  try {
    const config = loadConf({ file: configFile(shell, options), env: shell.env, role: 'check' });
    const { openCloud } = await import('@kronos/connect');
    const { nova, placement, close } = openCloud(config, shell.env);
    try {
      const metadata = new Map((await nova.listAggregates()).map((one) => [one.name, one.metadata]));
      const limit = createLimiter(CONCURRENCY);
      const found = new Map<string, NovaSettings>();
      for (const snapshot of snapshots) {
        const { aggregate, hosts } = snapshot;
        const ratios = await Promise.all(
          hosts.map(async ({ name, hypervisorId }) => {
            const inventories = Object.entries(await limit(() => placement.getInventories(hypervisorId)));
            return [name, Object.fromEntries(inventories.map(([of, one]) => [of, one.allocationRatio]))] as const;
          }),
        );
        const claims = await Promise.all(
          hosts.map(async ({ name, hypervisorId }): Promise<HostAllocations> => {
            const allocations = await limit(() => placement.getProviderAllocations(hypervisorId));
            return { host: name, providerId: hypervisorId, allocations };
          }),
        );
        const leaked = await confirmed(suspects(snapshot, claims), (id) => nova.getServer(id));
        found.set(aggregate, { metadata: metadata.get(aggregate) ?? {}, ratios: Object.fromEntries(ratios), leaked });
      }
      return found;
    } finally {
      await close();
    }
  } catch (error) {
    return errorText(error).replaceAll(/([:.]?)\s*\n\s*/g, (_, end: string) => `${end === '' ? '.' : end} `);
  }
}

/** Names on one line. */
const NAMED = 8;

function render(terminal: Terminal, { aggregate, unread, advice }: AggregateAdvice): string {
  const lines = advice.flatMap(({ text, remedy, hosts, servers }) => [
    `  ${text}`,
    ...(hosts === undefined ? [] : [`    ${some(hosts, NAMED)}`]),
    ...(servers === undefined
      ? []
      : [
          `    ${some(
            servers.map(({ serverName }) => serverName),
            NAMED,
          )}`,
        ]),
    `    -> ${remedy}`,
  ]);
  const none = unread === null ? 'Nothing to advise.' : 'Nothing to advise from the log and the snapshot.';
  return `${[
    paint(terminal, 'bold', aggregate),
    ...(lines.length === 0 ? [`  ${none}`] : lines),
    ...(unread === null
      ? []
      : [paint(terminal, 'dim', `  Weights and allocation ratios of Nova were not compared: ${unread}`)]),
  ].join('\n')}\n`;
}
