/**
 * Each alert by the fault that it is for: services at work, a real Prometheus with the rules of deploy/prometheus, a real
 * Alertmanager. The fault is made, the alert arrives there, what docs/runbook.md says is done, the alert ends.
 *
 * Nightly. A minute of the rules is a second here, and no alert waits longer than ten.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '@kronos/clock/testing';
import { messageId, type ServiceName, type StateCheckpointed } from '@kronos/contracts';
import { cacheDir, freePorts, unpackDebian } from '@kronos/eventlog/testing';
import { demoCloud, demoPolicies, type Sim, startSim } from '@kronos/simcloud';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { demoConfig } from '../../libs/cli/src/demo/files.ts';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';
import { runHere } from '../e2e/command.ts';
import { ended, ofType, SHORT_SEARCH, type Watch, watch } from '../e2e/world.ts';
import { nightly } from '../nightly.ts';
import { forgeCheckpoint } from '../recovery/forge.ts';
import { type Alert, noAlertmanager, startAlertmanager } from './alertmanager.ts';
import { ALERTS_ELSEWHERE } from './alertsElsewhere.ts';
import { findPrometheus, startPrometheus } from './prometheus.ts';

type Rule = { readonly alert: string; readonly expr: string; readonly for?: string };
type Rules = { readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] };
const rules = parse(
  readFileSync(fileURLToPath(new URL('../../deploy/prometheus/alerts.yml', import.meta.url)), 'utf8'),
) as Rules;
const alertNames = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };
const scaled = (text: string, scale: number, longest: number): string =>
  `${Math.min(longest, Math.ceil((Number.parseInt(text, 10) * (SECONDS[text.at(-1) ?? ''] ?? 1)) / scale))}s`;
/** The rules, in seconds for minutes. Starts take longer than that on a busy machine: those are counted in half a minute each. */
function quick({ groups }: Rules): Rules {
  const rule = (one: Rule): Rule => {
    const scale = one.alert === 'KronosRestarts' ? 6 : 60;
    const range = (_: string, before: string, text: string) => `${before}${scaled(text, scale, 600)}`;
    return {
      ...one,
      expr: one.expr.replaceAll(/(\[|offset )(\d+[smh])/g, range),
      ...(one.for === undefined ? {} : { for: scaled(one.for, 60, 10) }),
    };
  };
  return { groups: groups.map((group) => ({ ...group, rules: group.rules.map(rule) })) };
}

const prometheus = await findPrometheus('prometheus');
const none = nightly
  ? prometheus === null
    ? 'there is no prometheus, and its package cannot be downloaded'
    : await noAlertmanager()
  : 'it is of the night';
if (nightly && none !== null) console.warn(`skipped: ${none}`);

/** Debian's library that gives a process a clock of its own. */
async function wrongClocks(): Promise<string> {
  const place = join(cacheDir(), 'faketime-debian');
  if (!existsSync(place)) await unpackDebian(process.env, 'faketime-debian', { packages: ['libfaketime'] });
  const [library] = globSync('usr/lib/*/faketime/libfaketimeMT.so.1', { cwd: place });
  return join(place, library ?? expect.fail('libfaketime has no library'));
}

/** Far beyond what an alert takes: it ends only what hangs. */
const LIMIT_MS = 600_000;

describe.skipIf(none !== null)('each alert, by a real fault', () => {
  const options: Partial<Record<ServiceName, Record<string, string>>> = {};
  const fired = new Set<string>();
  let sim: Sim;
  let natsUrl = '';
  let nc: NatsConnection;
  let stage: DemoInstallation;
  let log: Watch;
  let manager: Awaited<ReturnType<typeof startAlertmanager>>;
  let server: Awaited<ReturnType<typeof startPrometheus>>;
  let receiver: { readonly http: Server; status: number };

  beforeAll(async () => {
    sim = await startSim({ scenario: demoCloud(7), speed: 10 });
    const [hook = 0, ...ports] = await freePorts(5);
    const [scorer = 0, planner = 0, executor = 0, ledger = 0] = ports;
    receiver = {
      http: createServer((_, answer) => answer.writeHead(receiver.status).end()).listen(hook, '127.0.0.1'),
      status: 500,
    };
    stage = await openInstallation({
      config: (places) => {
        natsUrl = places.natsUrl;
        const own = {
          keystoneUrl: sim.urls.identity,
          prometheusUrl: sim.urls.prometheus,
          ports: { scorer, planner, executor, ledger },
        };
        const text = demoConfig({ ...places, ...own }).replace('aggregates = general', 'aggregates = general, twin');
        return `${text}\n[notify:chat]\nformat = cloudevents\nurl = http://127.0.0.1:${hook}/\n`;
      },
      policies: demoPolicies,
      env: (of) => (of === 'provision' ? {} : { ...SHORT_SEARCH, OS_ENGINE__SEARCH_THREADS: '1', ...options[of] }),
      say: () => {},
      onExit: () => {},
    });
    log = watch(stage);
    nc = await connect({ servers: natsUrl });
    manager = await startAlertmanager();
    const targets = [scorer, planner, executor, ledger].map((port, i) => ({
      job: `kronos-${['scorer', 'planner', 'executor', 'ledger'][i]}`,
      address: `127.0.0.1:${port}`,
    }));
    server = await startPrometheus(prometheus ?? '', targets, [], {
      rules: quick(rules),
      alertmanager: new URL(manager.url).host,
    });
    // The commands take names from the newest snapshot.
    await log.until('a decision', (events) => ofType(events, 'cycle.decided').length > 0);
  });
  afterAll(async () => {
    await server?.stop();
    await manager?.stop();
    await nc?.close();
    await stage?.close();
    await sim?.close();
    receiver?.http.close();
  });

  // A phase that failed leaves no fault to the next one.
  afterEach(() => {
    sim.act({ act: 'mendAll' });
    for (const { name } of sim.cloud.hosts.values()) sim.act({ act: 'setHost', host: name, up: true, full: false });
  });

  /** `twin` is there for one fault: without hosts, it has no data of a policy ever. */
  const of = async (name: string): Promise<Alert[]> =>
    (await manager.active()).filter(
      ({ labels: { alertname, aggregate } }) =>
        alertname === name && (aggregate !== 'twin' || name === 'KronosObservationProblem'),
    );
  /** Waits for all of them at once: some end by themselves before the others begin. */
  const fires = async (...names: string[]) => {
    const seen = new Set<string>();
    const all = async () => {
      for (const { labels } of await manager.active()) seen.add(labels.alertname ?? '');
      return names.every((name) => seen.has(name));
    };
    await until(all, LIMIT_MS, () => `${names.join(', ')} to fire; there were: ${[...seen].join(', ')}`);
    for (const name of names) fired.add(name);
  };
  const ends = async (...names: string[]) => {
    for (const name of names) {
      let left: Alert[] = [];
      const over = async () => {
        left = await of(name);
        return left.length === 0;
      };
      await until(over, LIMIT_MS, () => `${name} to end; there is: ${JSON.stringify(left)}`);
    }
  };
  const kronos = async (...args: string[]) => {
    const { status, text } = await runHere([...args, '-c', stage.configFile]);
    if (status !== 0) throw new Error(`kronos ${args.join(' ')}: status ${status}\n${text}`);
    return text;
  };
  const end = async (service: ServiceName) => {
    await Promise.all((stage.processes.get(service) ?? []).map(endProcess));
  };
  const restart = async (service: ServiceName, env: Record<string, string>) => {
    await end(service);
    options[service] = env;
    stage.start(service);
  };
  const on = (host: string) => [...sim.cloud.servers.values()].filter((one) => one.host === host);
  const drain = (host: string) => kronos('drain', host, '--yes', '-r', 'trial');
  /** The newest plan that was proposed to people. */
  const waitingPlan = (): string =>
    log.events
      .flatMap((e) => (e.type === 'cycle.decided' && e.data.release === 'proposed' ? [e.data.plan?.id ?? ''] : []))
      .at(-1) ?? expect.fail('no plan waits');
  /** The newest task of the executor that has started and not ended. */
  const startedTask = async (): Promise<string> => {
    const find = () => {
      const over = ended(log.events);
      const begun = log.events.flatMap((e) => (e.type === 'migration.started' ? [e.data.taskId] : []));
      return begun.filter((id) => !over.has(id)).at(-1);
    };
    return await until(find, LIMIT_MS, 'a move that has started');
  };

  it('an aggregate that is paused and out of balance', async () => {
    await kronos('pause', '-a', 'general', '-m', 'trial');
    await fires('KronosPaused', 'KronosImbalanceStays');
  });

  it('an aggregate that is not there, and a receiver that refuses', async () => {
    await fires('KronosSinkDead', 'KronosObservationProblem');
    receiver.status = 200;
    sim.act({ act: 'createAggregate', aggregate: { name: 'twin', hosts: [] } });
    await ends('KronosSinkDead', 'KronosObservationProblem');
  });

  it('Nova that does not answer', async () => {
    sim.act({ act: 'faultApi', fault: { api: 'compute', effect: { kind: 'status', status: 503 } } });
    await fires('KronosOpenStackErrors', 'KronosNotReady', 'KronosObservationProblem');
    sim.act({ act: 'mendApi' });
    await ends('KronosOpenStackErrors', 'KronosNotReady', 'KronosObservationProblem');
    sim.act({ act: 'pauseApi', api: 'compute' });
    await fires('KronosNoSnapshots');
    sim.act({ act: 'resumeApi', api: 'compute' });
    await ends('KronosNoSnapshots');
  });

  it('Nova that takes longer than an interval', async () => {
    sim.act({
      act: 'faultApi',
      fault: { api: 'compute', path: '/servers/detail', effect: { kind: 'latency', ms: 7000 } },
    });
    await fires('KronosCyclesSkipped');
    sim.act({ act: 'mendApi' });
    await ends('KronosCyclesSkipped');
  });

  it('a planner that ends', async () => {
    await end('planner');
    await fires('KronosServiceDown', 'KronosHeartbeatsMissing', 'KronosNoDecisions');
    stage.start('planner');
    await ends('KronosServiceDown', 'KronosHeartbeatsMissing', 'KronosNoDecisions');
    for (let i = 0; i < 4; i++) {
      const before = await startTime();
      await restart('planner', {});
      await until(
        async () => (await startTime()) !== before && (await startTime()) !== undefined,
        LIMIT_MS,
        'a new start',
      );
    }
    await fires('KronosRestarts');
  });
  /** The start of the planner that Prometheus scraped last. */
  const startTime = async (): Promise<string | undefined> => {
    const query = encodeURIComponent('process_start_time_seconds{job="kronos-planner"}');
    const answer = await fetch(`${server.url}/api/v1/query?query=${query}`);
    return ((await answer.json()) as { data: { result: { value: [number, string] }[] } }).data.result[0]?.value[1];
  };

  it('a host that is down, and an exporter that says nothing', async () => {
    sim.act({ act: 'setHost', host: 'compute-03', up: false });
    sim.act({ act: 'faultSeries', fault: { kind: 'missing', metric: 'host_cpu_utilisation' } });
    await fires('KronosHostDown', 'KronosPolicyWithoutData', 'KronosPolicyMatchesNothing');
    sim.act({ act: 'setHost', host: 'compute-03', up: true });
    sim.act({ act: 'mendSeries' });
    await ends('KronosHostDown', 'KronosPolicyWithoutData', 'KronosPolicyMatchesNothing');
  });

  it('a log at its limit, and an event that cannot be read', async () => {
    const manage = await jetstreamManager(nc);
    const { config, state } = await manage.streams.info('KRONOS_LOG');
    await manage.streams.update('KRONOS_LOG', { max_bytes: Math.ceil(state.bytes * 1.1) });
    await fires('KronosLogFilling');
    const now = (await manage.streams.info('KRONOS_LOG')).state.bytes;
    await manage.streams.update('KRONOS_LOG', { max_bytes: now + 1 });
    await fires('KronosLogFull');
    await kronos('provision');
    await ends('KronosLogFilling', 'KronosLogFull');
    expect((await manage.streams.info('KRONOS_LOG')).config.max_bytes).toBe(config.max_bytes);

    const { seq } = await jetstream(nc).publish('kronos.controls.general', 'no event');
    await fires('KronosUnreadableEvents');
    await kronos('log', 'skip', String(seq), '--reason', 'trial');
    await ends('KronosUnreadableEvents');
  });

  it('a task that cannot be read', async () => {
    await jetstream(nc).publish('kronos.migrations.general', 'no task');
    await fires('KronosDeadLetter');
    await ends('KronosDeadLetter');
  });

  it('no room for a host that fails', async () => {
    await restart('planner', { OS_ENGINE__FAILOVER_HOSTS: '1' });
    for (const { name } of sim.cloud.hosts.values()) sim.act({ act: 'setHost', host: name, full: true });
    await fires('KronosFailoverRoom');
    for (const { name } of sim.cloud.hosts.values()) sim.act({ act: 'setHost', host: name, full: false });
    await ends('KronosFailoverRoom');
    await restart('planner', {});
  });

  it('moves that fail, and hosts that fail them', async () => {
    for (const { name } of sim.cloud.hosts.values())
      sim.act({ act: 'faultHost', host: name, fault: { kind: 'fail-inbound' } });
    await kronos('resume', '-a', 'general');
    await ends('KronosPaused');
    await fires('KronosMigrationsFailing', 'KronosHostsBroken');
    sim.act({ act: 'mendAll' });
    // Its exit status is 1 while there is an alarm.
    const { text } = await runHere(['status', '--json', '-c', stage.configFile]);
    const { aggregates } = JSON.parse(text) as { aggregates: { brokenHosts: { host: string }[] }[] };
    const hosts = aggregates.flatMap(({ brokenHosts }) => brokenHosts.map(({ host }) => host));
    expect(hosts.length).toBeGreaterThan(0);
    for (const host of hosts) await kronos('host', 'release', host);
    await ends('KronosHostsBroken', 'KronosMigrationsFailing');
  });

  it('a move that ends badly, and one that ends with a warning', async () => {
    const [first, second] = on('compute-09');
    for (const [one, vmError] of [
      [first, true],
      [second, false],
    ] as const)
      sim.act({
        act: 'faultServer',
        server: one?.uuid ?? '',
        fault: { kind: 'error-after-switchover', vmError, times: 1 },
      });
    await drain('compute-09');
    await fires('KronosServerInError', 'KronosMoveWithWarnings');
    sim.act({ act: 'setServer', server: first?.uuid ?? '', vmState: 'active' });
    await kronos('quarantine', 'release', first?.uuid ?? '');
    await ends('KronosServerInError', 'KronosMoveWithWarnings');
    await kronos('undrain', 'compute-09');
  });

  it('a server that cannot leave, and an abort that Nova refuses', async () => {
    const [stays, hangs] = on('compute-06');
    sim.act({ act: 'lockServer', server: stays?.uuid ?? '', reason: 'trial' });
    sim.act({ act: 'faultServer', server: hangs?.uuid ?? '', fault: { kind: 'hang', times: 1 } });
    sim.act({
      act: 'faultApi',
      fault: { api: 'compute', method: 'DELETE', path: '/migrations/', effect: { kind: 'status', status: 409 } },
    });
    await drain('compute-06');
    await fires('KronosServersStuck');
    await kronos('abort', await startedTask());
    await fires('KronosAbortRefused');
    sim.act({ act: 'mendAll' });
    sim.act({ act: 'unlockServer', server: stays?.uuid ?? '' });
    await ends('KronosServersStuck', 'KronosAbortRefused');
    await kronos('undrain', 'compute-06');
  });

  it('tasks that no executor starts, and a plan that nobody answers', async () => {
    await restart('planner', { OS_ENGINE__APPROVAL: 'manual' });
    await drain('compute-11');
    await fires('KronosPlanWaits');
    await end('executor');
    await kronos('approve', waitingPlan());
    await ends('KronosPlanWaits');
    await fires('KronosTasksNotStarted');
    stage.start('executor');
    await ends('KronosTasksNotStarted');
    await restart('planner', {});
    await kronos('undrain', 'compute-11');
    await ends('KronosImbalanceStays', 'KronosRestarts');
  });

  it('a checkpoint that is damaged, and one that contradicts the log', async () => {
    await end('ledger');
    // It has stored a checkpoint of the log until then.
    await kronos('quarantine', 'add', on('compute-04')[0]?.uuid ?? '', '--for', '1h');
    const { sequence } = await forgeCheckpoint(stage.log, 'general');
    stage.start('ledger');
    await fires('KronosCheckpointWrong');
    await until(
      async () => ((await checkpoint())?.data.sequence ?? 0) > sequence,
      LIMIT_MS,
      'a checkpoint of the ledger',
    );
    await restart('ledger', {});
    await ends('KronosCheckpointWrong');

    await end('ledger');
    const last = (await checkpoint()) ?? expect.fail('no checkpoint');
    const data = { ...last.data, sequence: last.data.sequence + 1, digest: 'sha256:00' };
    const id = messageId.checkpoint('general', data.sequence, data.installationId ?? null);
    await stage.log.append({ ...last, id, data });
    stage.start('ledger');
    await fires('KronosCheckpointSkipped');
    await ends('KronosCheckpointSkipped');
  });
  /** The newest one of the aggregate. */
  const checkpoint = async (): Promise<StateCheckpointed | null> => {
    let newest: StateCheckpointed | null = null;
    const delivered = stage.log.tail({ families: ['ledger'], aggregates: ['general'], since: 'all', end: true });
    for await (const { message } of delivered)
      if ((message as { type?: string } | undefined)?.type === 'state.checkpointed')
        newest = message as StateCheckpointed;
    return newest;
  };

  it('a service whose machine has a wrong clock', async () => {
    await restart('ledger', { LD_PRELOAD: await wrongClocks(), FAKETIME: '+30s', FAKETIME_DONT_FAKE_MONOTONIC: '1' });
    await fires('KronosClockSkew');
    await restart('ledger', {});
    await ends('KronosClockSkew');
  });

  it('are all tried, here or elsewhere', () => {
    expect([...fired, ...Object.keys(ALERTS_ELSEWHERE)].toSorted()).toEqual(alertNames.toSorted());
  });
});
