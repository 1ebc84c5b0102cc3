import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { cacheDir, freePorts, onPath } from '@kronos/eventlog/testing';
import { attributes, spans } from '@kronos/telemetry';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';
import { openWorld, settled, type World } from '../e2e/world.ts';
import { nightly } from '../nightly.ts';

/** A span of Jaeger's query API; times in microseconds. */
type Span = {
  spanID: string;
  operationName: string;
  startTime: number;
  duration: number;
  processID: string;
  tags: { key: string; value: unknown }[];
};
type Trace = { traceID: string; spans: Span[]; processes: Record<string, { serviceName: string }> };

/** Of the night: Jaeger takes half an hour to build. */
const jaeger = nightly ? onPath('jaeger', process.env, [join(cacheDir(), 'gobin')]) : null;
if (nightly && jaeger === null) console.warn('skipped: there is no jaeger on the PATH, and goTools.ts has built none');

/** A collector between the services and the store: the OpenTelemetry Collector that the program of Jaeger is made of. */
const collector = (otlp: number, store: number): string =>
  JSON.stringify({
    service: {
      pipelines: { traces: { receivers: ['otlp'], processors: ['batch'], exporters: ['otlphttp'] } },
      telemetry: { metrics: { level: 'none' } },
    },
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${otlp}` } } } },
    processors: { batch: {} },
    exporters: { otlphttp: { endpoint: `http://127.0.0.1:${store}` } },
  });

describe.skipIf(jaeger === null)('traces, through a Collector into Jaeger as deploy/compose configures it', () => {
  let directory = '';
  const running: ChildProcess[] = [];
  let url: string;
  let world: World;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-jaeger-'));
    const [http = 0, grpc = 0, otlp = 0, front = 0] = await freePorts(4);
    const config = readFileSync(new URL('../../deploy/compose/jaeger.yaml', import.meta.url), 'utf8')
      .replace('0.0.0.0:16686', `127.0.0.1:${http}`)
      .replace('0.0.0.0:16685', `127.0.0.1:${grpc}`)
      .replace('0.0.0.0:4318', `127.0.0.1:${otlp}`);
    for (const [name, text] of [
      ['jaeger.yaml', config],
      ['collector.yaml', collector(front, otlp)],
    ] as const) {
      writeFileSync(join(directory, name), text);
      running.push(spawn(jaeger ?? '', ['--config', join(directory, name)], { stdio: 'ignore' }));
    }
    url = `http://127.0.0.1:${http}`;
    await until(async () => (await fetch(`${url}/api/services`).catch(() => null))?.ok, undefined, 'jaeger to answer');
    world = await openWorld({ env: { OS_TELEMETRY__OTLP_ENDPOINT: `http://127.0.0.1:${front}` } });
    await world.until('a balanced cloud', settled);
  });
  afterAll(async () => {
    await world?.close();
    await Promise.all(running.map(endProcess));
    rmSync(directory, { recursive: true, force: true });
  });

  it('one migration is one trace over the services, and says how long each stage took', async () => {
    const completed = world.events.find((event) => event.type === 'migration.completed');
    const taskId = completed?.type === 'migration.completed' ? completed.data.taskId : '';
    const tags = encodeURIComponent(JSON.stringify({ [attributes.taskId]: taskId }));
    const query = `${url}/api/traces?service=kronos-executor&tags=${tags}`;
    let trace: Trace | undefined;
    const services = () => new Set(Object.values(trace?.processes ?? {}).map(({ serviceName }) => serviceName));
    // The exporters send spans in batches.
    const complete = async () => {
      trace = ((await (await fetch(query)).json()) as { data: Trace[] }).data[0];
      return services().size === 4;
    };
    await until(complete, undefined, () => `spans of four services; there are those of ${[...services()].join(', ')}`);
    expect([...services()].toSorted()).toEqual(['kronos-executor', 'kronos-ledger', 'kronos-planner', 'kronos-scorer']);
    const mine = trace?.spans.filter(({ tags: given }) =>
      given.every(({ key, value }) => key !== attributes.taskId || value === taskId),
    );
    const seconds = new Map<string, number>();
    for (const { operationName, duration } of mine ?? [])
      seconds.set(operationName, Math.max(seconds.get(operationName) ?? 0, duration / 1e6));
    const stages = [
      ...[spans.cycle, spans.request, spans.append, spans.decide, spans.dispatch],
      ...[spans.task, spans.preflight, spans.migrate, spans.follow, spans.fold],
    ];
    console.log(Object.fromEntries(stages.map((stage) => [stage, seconds.get(stage)])));
    for (const stage of stages) expect(seconds.get(stage), stage).toBeGreaterThan(0);
  });
});
