/** `kronos config check`: reads everything that the configuration names, and judges it as the scorer will. */
import { systemClock } from '@kronos/clock';
import {
  aggregateConfig,
  aggregateKey,
  type Config,
  ConfigError,
  engineOptions,
  type Loaded,
  loadConfig,
  renderProblem,
  scopeOf,
  shownOverrides,
  storageLimits,
} from '@kronos/config';
import { connectLog, type OpenStackCloud, openCloud, openPrometheus, readDurability } from '@kronos/connect';
import {
  bucketNames,
  count,
  cycleSnapshotId,
  errorText,
  iso,
  type Policy,
  type Snapshot,
  streamNames,
} from '@kronos/contracts';
import { type EventLog, natsWire } from '@kronos/eventlog';
import {
  aggregateReader,
  assemble,
  createLimiter,
  hostNamesOf,
  type Observation,
  readCloud,
  readOptions,
  vmNamesOf,
} from '@kronos/observation';
import type { Prometheus } from '@kronos/prometheus';
import { isKronosError } from '@kronos/telemetry/errors';
import { type CheckFinding, finding, type Report } from './finding.ts';
import type { MetricTypes } from './metricType.ts';
import { judgeAggregate } from './movable.ts';
import { judgeQueries, metricsToType } from './queries.ts';
import { checkRegions } from './regions.ts';
import { judgeAccount, judgeDurability, judgeSnapshots } from './storage.ts';

/** Calls to OpenStack, and queries of Prometheus, at a time. */
const CONCURRENCY = 8;

/** Checks everything that can be checked from here, in one pass. Never throws. */
export async function check(
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  report: Report,
): Promise<void> {
  let loaded: Loaded;
  try {
    loaded = loadConfig({ file, env, role: 'check' });
  } catch (error) {
    if (error instanceof ConfigError)
      for (const problem of error.problems)
        report(finding('failed', 'files', 'files', { text: renderProblem(problem) }));
    else report(failed('files', 'files', error));
    return;
  }
  const { config, policiesOf } = loaded;
  const sets = policySets(config, policiesOf);
  for (const set of sets) report(files(set));
  for (const one of formerNames(loaded)) report(one);
  for (const one of overrides(config)) report(one);
  const nats = checkNats(config);
  const cloud = checkObservation(loaded, sets, env);
  const regions = checkRegions(config).catch((error: unknown) => [failed('region', '[console] regions', error)]);
  for (const one of await nats) report(one);
  for (const one of await regions) report(one);
  const { findings, snapshots } = await cloud;
  for (const one of findings) report(one);
  const sizes = await Promise.all(snapshots.map(sizeOf));
  for (const one of judgeSnapshots(storageLimits(config), sizes, config.engine.evaluationInterval)) report(one);
}

/** The aggregates that share a file of policies. */
type PolicySet = {
  /** Null: rules only (balance = false). */
  readonly file: string | null;
  readonly policies: readonly Policy[];
  readonly aggregates: readonly string[];
  /** Added to the name of a finding where there are several sets. */
  readonly suffix: string;
};

function policySets(config: Config, policiesOf: Loaded['policiesOf']): PolicySet[] {
  const sets = Map.groupBy(scopeOf(config), (aggregate) => {
    const { balance, policiesFile } = aggregateConfig(config, aggregate).engine;
    return balance ? policiesFile : null;
  });
  return [...sets].map(([file, aggregates]) => ({
    file,
    aggregates,
    policies: policiesOf(aggregates[0] ?? ''),
    suffix: sets.size === 1 ? '' : ` (${aggregates.join(', ')})`,
  }));
}

function files({ file, policies, suffix }: PolicySet): CheckFinding {
  const what = `files${suffix}`;
  if (file === null) return finding('ok', 'files', what, { text: 'rules only (balance = false): no policies' });
  const names = policies.filter((policy) => policy.enabled).map((policy) => policy.name);
  return finding('ok', 'files', what, {
    text: `${count(names.length, 'policy', 'policies')} in force: ${names.join(', ')}`,
    detail: { file, policies: names },
  });
}

/** One warning per option that has a former name in the file or the environment. */
export const formerNames = ({ warnings }: Pick<Loaded, 'warnings'>): CheckFinding[] =>
  warnings.map(({ file, line, option, problem, remedy }) =>
    finding('warning', 'former-name', option ?? file, {
      text: `${line === null ? file : `${file}:${line}`}: ${problem}`,
      remedy,
    }),
  );

/** One finding per section `[aggregate:NAME]`: what it sets. */
function overrides(config: Config): CheckFinding[] {
  const shown = Object.entries(shownOverrides(config));
  return [...config.overrides.keys()].map((aggregate) => {
    const prefix = aggregateKey(aggregate, '');
    const own = shown.flatMap(([key, value]) =>
      key.startsWith(prefix) ? [[key.slice(prefix.length), String(value)] as const] : [],
    );
    const what = `[aggregate:${aggregate}]`;
    if (own.length === 0) return finding('ok', 'aggregate-options', what, { text: 'sets nothing', detail: {} });
    const text = own.map(([option, value]) => `${option} = ${value}`).join(', ');
    return finding('ok', 'aggregate-options', what, { text, detail: Object.fromEntries(own) });
  });
}

/** @param silent what to do where no answer came */
function failed(code: string, what: string, error: unknown, silent?: string): CheckFinding {
  const own = error instanceof Error && 'remedy' in error ? error.remedy : undefined;
  const unanswered = isKronosError(error) && SILENT.has(error.code) ? silent : undefined;
  const remedy = (isKronosError(error) ? error.remedy : typeof own === 'string' ? own : undefined) ?? unanswered;
  return finding('failed', code, what, { text: errorText(error), remedy });
}

/** Codes of calls that got no answer. */
const SILENT: ReadonlySet<string> = new Set(['KRONOS_HTTP_UNREACHABLE', 'KRONOS_HTTP_TIMEOUT']);

const noAnswer = (address: string): string =>
  `Start it, or correct its address (${address}), the proxy (HTTPS_PROXY, NO_PROXY) or the firewall between.`;

/** Bytes of a snapshot as it is stored. */
const sizeOf = async (snapshot: Snapshot): Promise<number> =>
  (await natsWire.zip(new TextEncoder().encode(JSON.stringify(snapshot)))).length;

/** The connection, its streams, and the room that they may take. */
async function checkNats(config: Config): Promise<CheckFinding[]> {
  const what = 'NATS';
  const room = { limits: storageLimits(config), replicas: config.nats.replicas };
  try {
    const log = await connectLog(config, 'cli', null);
    try {
      const [streams, account, durability] = await Promise.all([
        checkStreams(config, log),
        // Where JetStream does not answer, the streams say why.
        log.accountLimits().catch(() => null),
        readDurability(config.nats.monitoring),
      ]);
      return [streams, judgeAccount({ ...room, account }), judgeDurability(log.server, durability)];
    } finally {
      await log.close();
    }
  } catch (error) {
    return [failed('nats', what, error), judgeAccount({ ...room, account: null })];
  }
}

async function checkStreams(config: Config, log: EventLog): Promise<CheckFinding> {
  const what = 'NATS';
  try {
    await log.verify({
      streams: Object.values(streamNames),
      buckets: Object.values(bucketNames),
      taskConsumers: scopeOf(config),
      sinks: [...config.sinks.keys()],
      limits: storageLimits(config),
      ackWaitSeconds: config.nats.ackWait,
    });
    return finding('ok', 'nats', what, { text: `nats-server ${log.server.version}, provisioned` });
  } catch (error) {
    return failed('nats', what, error);
  }
}

/** Keystone, Nova, Placement and Prometheus: one observation, judged. */
async function checkObservation(
  loaded: Loaded,
  sets: readonly PolicySet[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly findings: readonly CheckFinding[]; readonly snapshots: readonly Snapshot[] }> {
  const { config } = loaded;
  const findings: CheckFinding[] = [];
  const policies = sets.flatMap((set) => set.policies);
  await using opened = new AsyncDisposableStack();
  const { cloud, finding: keystone } = await reachCloud(config, env, opened);
  findings.push(keystone);
  const { prometheus, finding: answer } = await reachPrometheus(config, policies, env);
  if (prometheus !== null) opened.defer(() => prometheus.close());

  const usable = answer?.state === 'ok' ? prometheus : null;
  const observation = await readCloud({
    nova: cloud?.nova ?? null,
    prometheus: usable,
    policies,
    stalenessMs: config.prometheus.stalenessThreshold * 1000,
    queryDeadlineMs: config.prometheus.timeout * 1000,
    concurrency: CONCURRENCY,
    known: [],
    clock: systemClock,
    signal: new AbortController().signal,
  });
  if (cloud !== null) findings.push(...(await novaFindings(cloud, observation)));
  if (answer !== null) findings.push(answer);
  const snapshots = cloud === null ? [] : await snapshotsOf(loaded, cloud, observation, usable);
  const types = await declaredTypes(usable, observation);
  // Allocation policies need no answer.
  const asked = answer === null ? sets.some(({ file }) => file !== null) : answer.state === 'ok';
  if (asked)
    for (const set of sets)
      findings.push(
        ...judgeQueries({
          policies: set.policies,
          suffix: set.suffix,
          answers: observation.answers,
          types,
          snapshots: snapshots.filter(({ aggregate }) => set.aggregates.includes(aggregate)),
          hosts: hostNamesOf(observation.lists),
          vms: vmNamesOf(observation.index),
        }),
      );
  const names = observation.lists.aggregates.ok ? observation.lists.aggregates.value.map(({ name }) => name) : [];
  for (const snapshot of snapshots) {
    const options = engineOptions(config, snapshot.aggregate);
    // Without Prometheus every policy is skipped; that is reported once, above.
    findings.push(...judgeAggregate(snapshot, asked ? options : { ...options, balance: false }, names));
  }
  return { findings, snapshots };
}

async function reachCloud(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  opened: AsyncDisposableStack,
): Promise<{ readonly cloud: OpenStackCloud | null; readonly finding: CheckFinding }> {
  try {
    const cloud = openCloud(config, env);
    const { session } = cloud;
    opened.defer(() => session.close());
    await session.token();
    const { user, authUrl } = session.identity;
    const text = `authenticated as ${user} at ${authUrl}`;
    return { cloud, finding: finding('ok', 'keystone', 'Keystone', { text }) };
  } catch (error) {
    return {
      cloud: null,
      finding: failed('keystone', 'Keystone', error, noAnswer('[nova] auth_url, or auth_url in clouds.yaml')),
    };
  }
}

async function reachPrometheus(
  config: Config,
  policies: readonly Policy[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly prometheus: Prometheus | null; readonly finding: CheckFinding | null }> {
  const what = 'Prometheus';
  if (policies.every(({ enabled, allocation }) => !enabled || allocation !== undefined))
    return { prometheus: null, finding: null };
  let prometheus: Prometheus | null = null;
  try {
    prometheus = openPrometheus(config, {}, env);
    if (prometheus === null)
      return {
        prometheus,
        finding: finding('failed', 'prometheus', what, {
          text: 'no [prometheus] url is set',
          remedy: 'Set it, or balance by allocations: source: allocation in policies.yaml.',
        }),
      };
    const { startedAt } = await prometheus.runtimeInfo();
    const since = startedAt === undefined ? '' : `, running since ${startedAt}`;
    return {
      prometheus,
      finding: finding('ok', 'prometheus', what, {
        text: `answers at ${config.prometheus.url ?? "the catalog's metric-storage"}${since}`,
      }),
    };
  } catch (error) {
    return { prometheus, finding: failed('prometheus', what, error, noAnswer('[prometheus] url')) };
  }
}

/** The types of the metrics that the queries select. Without metadata the values alone are judged. */
async function declaredTypes(prometheus: Prometheus | null, { answers }: Observation): Promise<MetricTypes> {
  const types = new Map<string, string>();
  if (prometheus === null) return types;
  const limit = createLimiter(CONCURRENCY);
  await Promise.all(
    metricsToType(answers).map(async (metric) => {
      const type = await limit(() => prometheus.metricType(metric)).catch(() => null);
      if (type !== null) types.set(metric, type);
    }),
  );
  return types;
}

async function novaFindings(cloud: OpenStackCloud, { lists }: Observation): Promise<CheckFinding[]> {
  const unread = Object.entries(lists).flatMap(([part, list]) =>
    list.ok ? [] : [finding('failed', 'nova-list', `Nova ${part}`, { text: list.text })],
  );
  try {
    const { max } = await cloud.nova.versions();
    const count = lists.hypervisors.ok ? lists.hypervisors.value.length : 0;
    const servers = lists.servers.ok ? lists.servers.value.length : 0;
    return [
      finding('ok', 'nova', 'Nova', {
        text: `microversions up to ${max}, ${count} hypervisors, ${servers} servers`,
        detail: { maxMicroversion: max, hypervisors: count, servers },
      }),
      ...unread,
    ];
  } catch (error) {
    return [failed('nova', 'Nova', error, noAnswer("the endpoint in Keystone's catalog")), ...unread];
  }
}

/** The snapshots that the scorer would publish now. */
async function snapshotsOf(
  { config, policiesOf, hostCells }: Loaded,
  cloud: OpenStackCloud,
  observation: Observation,
  prometheus: Prometheus | null,
): Promise<Snapshot[]> {
  const { engine } = config;
  const scope = scopeOf(config);
  const options = readOptions(config);
  const readAggregate = aggregateReader({
    ...cloud,
    prometheus,
    file: hostCells,
    concurrency: CONCURRENCY,
    clock: systemClock,
    scope,
    policiesOf,
    observe: options,
  });
  const { signal } = new AbortController();
  return await Promise.all(
    scope.map(async (aggregate) => {
      const readings = await readAggregate(aggregate, observation, signal);
      return assemble({
        identity: {
          id: cycleSnapshotId(aggregate, 0),
          purpose: 'record',
          cycle: 0,
          intervalSeconds: engine.evaluationInterval,
          observedFrom: iso(observation.fromMs),
          time: iso(systemClock.now()),
        },
        aggregate,
        scope,
        options,
        policies: policiesOf(aggregate),
        balance: aggregateConfig(config, aggregate).engine.balance,
        ...observation,
        ...readings,
        known: [],
      });
    }),
  );
}
