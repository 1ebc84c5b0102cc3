/** `kronos config check`: reads everything that the configuration names, and judges it as the scorer will. */
import { systemClock } from '@kronos/clock';
import {
  type Config,
  ConfigError,
  engineOptions,
  loadConfig,
  renderProblem,
  scopeOf,
  storageLimits,
} from '@kronos/config';
import { type Cloud, connectLog, openCloud, openPrometheus } from '@kronos/connect';
import { bucketNames, cycleSnapshotId, type Policy, type Snapshot, streamNames } from '@kronos/contracts';
import {
  assemble,
  CapacityReader,
  hostNamesOf,
  hostsOf,
  type Observation,
  observe,
  vmNamesOf,
} from '@kronos/observation';
import type { Prometheus } from '@kronos/prometheus';
import { isKronosError } from '@kronos/telemetry/errors';
import { type Finding, finding, type Report } from './finding.ts';
import { judgeAggregate } from './movable.ts';
import { judgeQueries } from './queries.ts';

/** Calls to OpenStack, and queries of Prometheus, at a time. */
const CONCURRENCY = 8;

/** Checks everything that can be checked from here, in one pass. Never throws. */
export async function check(
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  report: Report,
): Promise<void> {
  let config: Config;
  let policies: readonly Policy[];
  try {
    ({ config, policies } = loadConfig({ file, env, role: 'check' }));
  } catch (error) {
    if (error instanceof ConfigError)
      for (const problem of error.problems) report(finding('failed', 'files', 'files', renderProblem(problem)));
    else report(failed('files', 'files', error));
    return;
  }
  report(files(config, policies));
  const nats = checkNats(config);
  const cloud = checkObservation(config, policies, env);
  for (const one of await nats) report(one);
  for (const one of await cloud) report(one);
}

function files(config: Config, policies: readonly Policy[]): Finding {
  if (!config.engine.balance) return finding('ok', 'files', 'files', 'rules only (balance = false): no policies');
  const names = policies.filter((policy) => policy.enabled).map((policy) => policy.name);
  return finding('ok', 'files', 'files', `${names.length} policies in force: ${names.join(', ')}`, {
    detail: { policies: names },
  });
}

function failed(code: string, what: string, error: unknown): Finding {
  const remedy = isKronosError(error) ? error.remedy : undefined;
  return finding('failed', code, what, error instanceof Error ? error.message : String(error), { remedy });
}

async function checkNats(config: Config): Promise<Finding[]> {
  const what = 'NATS';
  try {
    const log = await connectLog(config, 'cli', null);
    try {
      await log.verify({
        streams: Object.values(streamNames),
        buckets: Object.values(bucketNames),
        taskConsumers: scopeOf(config),
        limits: storageLimits(config),
        ackWaitSeconds: config.nats.ackWait,
      });
      return [finding('ok', 'nats', what, `nats-server ${log.server.version}, provisioned`)];
    } finally {
      await log.close();
    }
  } catch (error) {
    return [failed('nats', what, error)];
  }
}

/** Keystone, Nova, Placement and Prometheus: one observation, judged. */
async function checkObservation(
  config: Config,
  policies: readonly Policy[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  await using opened = new AsyncDisposableStack();
  let cloud: Cloud | null = null;
  try {
    cloud = openCloud(config, env);
    const { session } = cloud;
    opened.defer(() => session.close());
    await session.token();
    const { user, authUrl } = session.identity;
    findings.push(finding('ok', 'keystone', 'Keystone', `authenticated as ${user} at ${authUrl}`));
  } catch (error) {
    findings.push(failed('keystone', 'Keystone', error));
    cloud = null;
  }
  const { prometheus, finding: answer } = await reachPrometheus(config, policies);
  if (prometheus !== null) opened.defer(() => prometheus.close());

  const observation = await observe({
    nova: cloud?.nova ?? null,
    prometheus: answer?.state === 'ok' ? prometheus : null,
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
  const snapshots = cloud === null ? [] : await snapshotsOf(config, policies, cloud, observation);
  // Allocation policies need no answer.
  const asked = answer?.state === 'ok' || (answer === null && config.engine.balance);
  if (asked)
    findings.push(
      ...judgeQueries({
        policies,
        answers: observation.answers,
        snapshots,
        hosts: hostNamesOf(observation.lists),
        vms: vmNamesOf(observation.index),
      }),
    );
  const options = engineOptions(config);
  // Without Prometheus every policy is skipped; that is reported once, above.
  const judged = asked ? options : { ...options, balance: false };
  const names = observation.lists.aggregates.ok ? observation.lists.aggregates.value.map(({ name }) => name) : [];
  for (const snapshot of snapshots) findings.push(...judgeAggregate(snapshot, judged, names));
  return findings;
}

async function reachPrometheus(
  config: Config,
  policies: readonly Policy[],
): Promise<{ readonly prometheus: Prometheus | null; readonly finding: Finding | null }> {
  const what = 'Prometheus';
  if (!config.engine.balance || policies.every(({ enabled, allocation }) => !enabled || allocation !== undefined))
    return { prometheus: null, finding: null };
  let prometheus: Prometheus | null = null;
  try {
    prometheus = openPrometheus(config);
    if (prometheus === null)
      return { prometheus, finding: finding('failed', 'prometheus', what, 'no [prometheus] url is set') };
    const { startedAt } = await prometheus.runtimeInfo();
    const since = startedAt === undefined ? '' : `, running since ${startedAt}`;
    return { prometheus, finding: finding('ok', 'prometheus', what, `answers at ${config.prometheus.url}${since}`) };
  } catch (error) {
    return { prometheus, finding: failed('prometheus', what, error) };
  }
}

async function novaFindings(cloud: Cloud, { lists }: Observation): Promise<Finding[]> {
  const unread = Object.entries(lists).flatMap(([part, list]) =>
    list.ok ? [] : [finding('failed', 'nova-list', `Nova ${part}`, list.text)],
  );
  try {
    const { max } = await cloud.nova.versions();
    const count = lists.hypervisors.ok ? lists.hypervisors.value.length : 0;
    const servers = lists.servers.ok ? lists.servers.value.length : 0;
    return [
      finding('ok', 'nova', 'Nova', `microversions up to ${max}, ${count} hypervisors, ${servers} servers`, {
        detail: { maxMicroversion: max, hypervisors: count, servers },
      }),
      ...unread,
    ];
  } catch (error) {
    return [failed('nova', 'Nova', error), ...unread];
  }
}

/** The snapshots that the scorer would publish now. */
async function snapshotsOf(
  config: Config,
  policies: readonly Policy[],
  cloud: Cloud,
  observation: Observation,
): Promise<Snapshot[]> {
  const { engine, nova } = config;
  const scope = scopeOf(config);
  const options = { hypervisorTypes: nova.hypervisorTypes, optOut: engine.optOut, cells: nova.cells };
  const reader = new CapacityReader(cloud.placement, CONCURRENCY, systemClock);
  const { signal } = new AbortController();
  return await Promise.all(
    scope.map(async (aggregate) => {
      const topology = hostsOf(observation.lists, aggregate, scope, options);
      const capacity = await reader.read(topology, signal);
      return assemble({
        identity: {
          id: cycleSnapshotId(aggregate, 0),
          purpose: 'record',
          cycle: 0,
          intervalSeconds: engine.evaluationInterval,
          observedFrom: new Date(observation.fromMs).toISOString(),
          time: new Date(systemClock.now()).toISOString(),
        },
        aggregate,
        scope,
        options,
        policies,
        balance: engine.balance,
        lists: observation.lists,
        index: observation.index,
        capacity,
        answers: observation.answers,
        known: [],
        fates: observation.fates,
      });
    }),
  );
}
