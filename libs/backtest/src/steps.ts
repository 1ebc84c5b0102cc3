/** The snapshots of a reconstruction, each put together when it is asked for. */
import { createHash } from 'node:crypto';
import { cycleSnapshotId, iso, type Policy, type Reconstructed, type Snapshot } from '@kronos/contracts';
import {
  assemble,
  type CloudLists,
  hostNamesOf,
  indexServers,
  type MatchedAnswers,
  matchAnswers,
  type QueryAnswer,
  questionsOf,
  vmNamesOf,
} from '@kronos/observation';
import { RecordingInvalid, type SnapshotEntry } from '@kronos/replay';
import { type CloudPast, type CloudThen, pastOfCloud, withDown } from './past.ts';
import { answerAt, type SeriesWindow, type StepAnswer, WINDOW_POINTS } from './readSeries.ts';
import { type BacktestSources, type Parameters, readParameters, sourcesIn, stepCount } from './sources.ts';

/** Windows of one query that are held in memory: the one that is read, and the one before. */
const HELD = 3;

export type Steps = {
  readonly parameters: Parameters;
  readonly past: CloudPast;
  readonly count: number;
  readonly timeOf: (step: number) => number;
  /** @throws RecordingInvalid */
  readonly snapshot: (aggregate: string, step: number) => Promise<Snapshot>;
  /** Every snapshot, in the order of time. */
  readonly entries: () => SnapshotEntry[];
};

/** The queries of all aggregates, in a fixed order: a window's file has the number of its query. */
export const allQueries = ({ aggregates }: Pick<Parameters, 'aggregates'>): string[] =>
  questionsOf(policiesOf(aggregates))
    .map(({ query }) => query)
    .sort();

const policiesOf = (aggregates: Parameters['aggregates']): Policy[] =>
  Object.values(aggregates).flatMap(({ policies, balance }) => (balance ? policies : []));

/** The reconstruction in a directory. @throws RecordingInvalid */
export async function openSteps(directory: string): Promise<Steps> {
  const parameters = await readParameters(directory);
  const sources = sourcesIn(directory);
  const history = parameters === null ? null : await sources.readNova();
  if (parameters === null || history === null)
    throw new RecordingInvalid(directory, 'holds no backtest that was read to its end');
  const past = pastOfCloud(history);
  const readAt = iso(history.readMs);
  const windows = windowCache(sources);
  const queries = allQueries(parameters);
  const timeOf = (step: number): number => parameters.sinceMs + step * parameters.stepMs;
  const scope = Object.keys(parameters.aggregates);

  const seen = async (step: number): Promise<{ then: CloudThen; answers: MatchedAnswers }> => {
    const asked = await Promise.all(
      queries.map(async (query, i) => answerOf(await stepAnswer(windows, i, parameters, step), query, timeOf(step))),
    );
    const then = past.at(timeOf(step));
    const answers = matched(parameters, asked, then.lists);
    return { then, answers };
  };
  // The aggregates of one step share what it was made of.
  let last: { readonly step: number; readonly seen: ReturnType<typeof seen> } | null = null;

  const snapshot = async (aggregate: string, step: number): Promise<Snapshot> => {
    if (last?.step !== step) last = { step, seen: seen(step) };
    return snapshotOf({ parameters, aggregate, scope, atMs: timeOf(step), readAt, ...(await last.seen) });
  };
  return {
    parameters,
    past,
    count: stepCount(parameters),
    timeOf,
    snapshot,
    entries: () =>
      Array.from({ length: stepCount(parameters) }, (_, step) => step).flatMap((step) =>
        scope.map((aggregate) => entryOf(aggregate, step, { parameters, timeMs: timeOf(step), snapshot })),
      ),
  };
}

function entryOf(
  aggregate: string,
  step: number,
  { parameters, timeMs, snapshot }: Pick<Steps, 'parameters' | 'snapshot'> & { readonly timeMs: number },
): SnapshotEntry {
  const id = cycleSnapshotId(aggregate, Math.floor(timeMs / parameters.stepMs));
  return {
    id,
    aggregate,
    timeMs,
    purpose: async () => 'cycle',
    async read() {
      const bytes = new TextEncoder().encode(JSON.stringify(await snapshot(aggregate, step)));
      return { bytes, digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`, name: id };
    },
  };
}

type WindowCache = (query: number, window: number) => Promise<SeriesWindow>;

function windowCache(sources: BacktestSources): WindowCache {
  const held = new Map<string, Promise<SeriesWindow>>();
  const order = new Map<number, string[]>();
  return (query, window) => {
    const key = `${query} ${window}`;
    const found = held.get(key);
    if (found !== undefined) return found;
    const reading = sources.readWindow(query, window);
    held.set(key, reading);
    const keys = [...(order.get(query) ?? []), key];
    while (keys.length > HELD) held.delete(keys.shift() ?? '');
    order.set(query, keys);
    return reading;
  };
}

async function stepAnswer(
  windows: WindowCache,
  query: number,
  parameters: Parameters,
  step: number,
): Promise<StepAnswer> {
  const number = Math.floor(step / WINDOW_POINTS);
  const at = step % WINDOW_POINTS;
  const withBefore = parameters.stepMs <= parameters.stalenessMs;
  const before = at === 0 && number > 0 && withBefore ? await windows(query, number - 1) : null;
  return answerAt(await windows(query, number), at, { before, withBefore });
}

const answerOf = ({ samples, recent, lost, warnings }: StepAnswer, query: string, timeMs: number): QueryAnswer => ({
  query,
  timeMs,
  instant: lost === null ? samples : null,
  range: lost === null ? recent : null,
  timestamps: undefined,
  failure: lost === null ? null : { kind: 'unreachable', code: 'KRONOS_HTTP_UNREACHABLE', text: lost },
  warnings,
});

const matched = (
  { aggregates, stalenessMs }: Parameters,
  answers: readonly QueryAnswer[],
  lists: CloudLists,
): MatchedAnswers =>
  matchAnswers({
    policies: policiesOf(aggregates),
    answers,
    stalenessMs,
    hosts: hostNamesOf(lists),
    vms: vmNamesOf(indexServers(lists.servers.ok ? lists.servers.value : [], [])),
  });

type SnapshotInput = {
  readonly parameters: Parameters;
  readonly aggregate: string;
  readonly scope: readonly string[];
  readonly atMs: number;
  readonly readAt: string;
  readonly then: CloudThen;
  readonly answers: MatchedAnswers;
};

/** The snapshot that a scorer would have taken, as far as others have kept what it would have seen. Pure. */
function snapshotOf({ parameters, aggregate, scope, atMs, readAt, then, answers }: SnapshotInput): Snapshot {
  const own = parameters.aggregates[aggregate];
  if (own === undefined) throw new RangeError(`the backtest has no aggregate ${aggregate}`);
  const down = hostsDown(then.lists, answers);
  const lists = down === null ? then.lists : withDown(then.lists, down);
  const index = indexServers(
    lists.servers.ok ? lists.servers.value : [],
    lists.migrations.ok ? lists.migrations.value : [],
  );
  const time = iso(atMs);
  const snapshot = assemble({
    identity: {
      id: cycleSnapshotId(aggregate, Math.floor(atMs / parameters.stepMs)),
      purpose: 'cycle',
      cycle: Math.floor(atMs / parameters.stepMs),
      intervalSeconds: parameters.stepMs / 1000,
      observedFrom: time,
      time,
    },
    aggregate,
    scope,
    options: parameters.observe,
    policies: own.policies,
    balance: own.balance,
    lists,
    index,
    listings: new Map(),
    capacity: then.capacity,
    answers,
    known: [],
    fates: new Map(),
  });
  return {
    ...snapshot,
    // The claims of such a server are today's: it stays where it is.
    servers: snapshot.servers.map((server) =>
      then.flavorUnknown.has(server.id) ? { ...server, optedOutBy: server.optedOutBy ?? FLAVOR_UNKNOWN } : server,
    ),
    reconstructed: { readAt, sources: [...parameters.sources], unknown: unknownIn(snapshot, then, down) },
  };
}

const FLAVOR_UNKNOWN = 'its flavor at this time is not known';

function unknownIn(snapshot: Snapshot, then: CloudThen, down: ReadonlySet<string> | null): Reconstructed['unknown'] {
  const counts = {
    ...then.unknown,
    hostsWithoutValues: snapshot.hosts.filter(({ name }) => down?.has(name) === true).length,
    vmSeriesWithoutServer: Math.max(0, ...snapshot.vmReadings.map(({ unmatchedLabels }) => unmatchedLabels)),
    queriesWithoutAnswer: snapshot.hostReadings.filter(({ health }) => health !== 'HEALTHY').length,
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

/**
 * Hosts that were down: no value of their own, and none of a VM on them, while others have values. Nova keeps no history of its
 * services. Null: nothing tells.
 */
function hostsDown(lists: CloudLists, answers: MatchedAnswers): ReadonlySet<string> | null {
  const alive = new Set(answers.hosts.flatMap(({ matched: one }) => [...one.instant.keys()]));
  if (alive.size === 0 || !lists.services.ok || !lists.servers.ok) return null;
  const vms = new Set(answers.vms.vm_profile.flatMap(({ matched: one }) => [...one.instant.keys()]));
  for (const { id, host } of lists.servers.value) if (host !== null && vms.has(id)) alive.add(host);
  return new Set(lists.services.value.map(({ host }) => host).filter((host) => !alive.has(host)));
}
