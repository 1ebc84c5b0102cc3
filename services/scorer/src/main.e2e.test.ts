import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { SnapshotTaken } from '@kronos/contracts';
import { demoCloud, demoPolicies } from '@kronos/simcloud';
import { OPENSTACK_APIS } from '@kronos/telemetry';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Bed, openBed } from '../testing/bed.ts';

let bed: Bed;
let directory = '';
beforeAll(async () => {
  bed = await openBed({ scenario: demoCloud(), scope: ['general'] });
  directory = mkdtempSync(join(tmpdir(), 'kronos-scorer-'));
  writeFileSync(join(directory, 'policies.yaml'), demoPolicies);
});
afterAll(async () => {
  await bed.close();
  rmSync(directory, { recursive: true });
});

interface Process {
  readonly child: ChildProcess;
  /** Both outputs so far. */
  output(): string;
  /** Waits until the output fits the pattern, and gives what its first group found. */
  says(pattern: RegExp): Promise<string>;
  /** The exit code. */
  readonly ended: Promise<number | null>;
}

const children: Process[] = [];
afterAll(() => {
  for (const { child } of children) child.kill('SIGKILL');
});

function scorer(options: Readonly<Record<string, string>> = {}): Process {
  const file = join(directory, `kronos-${children.length}.conf`);
  writeFileSync(
    file,
    [
      '[engine]',
      'aggregates = general',
      `evaluation_interval = ${options.interval ?? '1'}`,
      `policies_file = ${join(directory, 'policies.yaml')}`,
      '[nova]',
      `auth_url = ${bed.sim.urls.identity}`,
      'username = admin',
      `password = ${options.password ?? 'secret'}`,
      'project_name = admin',
      'user_domain_id = default',
      'project_domain_id = default',
      'status_code_retries = 0',
      'connect_retries = 0',
      '[prometheus]',
      `url = ${bed.sim.urls.prometheus}`,
      '[nats]',
      `servers = ${options.nats ?? bed.nats.url}`,
      // The limits that the bed was provisioned with.
      'snapshot_max_age = 3600',
      'snapshot_max_bytes = 64MiB',
      'log_max_bytes = 64MiB',
      '[http]',
      'scorer_port = 0',
      '[log]',
      'format = json',
      ...(options.otlp === undefined ? [] : ['[telemetry]', `otlp_endpoint = ${options.otlp}`]),
    ].join('\n'),
  );
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, '--config', file], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const looks = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      for (const look of looks) look();
    });
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const one: Process = {
    child,
    output: () => text,
    says: async (pattern) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const look = (): void => {
        const found = pattern.exec(text);
        if (found !== null) resolve(found[1] ?? found[0]);
      };
      looks.add(look);
      look();
      const over = ended.then((code) => {
        throw new Error(`ended with ${code} before it said ${pattern}: ${text}`);
      });
      return Promise.race([promise, over]);
    },
    ended,
  };
  children.push(one);
  return one;
}

describe('the scorer as a process', () => {
  test('takes snapshots, is ready, shows its figures, and ends with 0 on SIGTERM', async () => {
    const one = scorer();
    const url = await one.says(/"url":"([^"]+)"/);
    const [taken] = await bed.until('two snapshots', (all) => all.length >= 2);
    expect(taken?.by).toMatchObject({ service: 'scorer' });
    expect(taken?.data).toMatchObject({ hosts: 12, servers: 150, problems: [] });
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([200, expect.stringContaining('"ready":true')]);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/kronos_snapshots_total\{[^}]*outcome="published"[^}]*\} [1-9]/);
    expect(metrics).toMatch(/kronos_imbalance_ratio\{[^}]*policy="cpu"[^}]*\} 0\.7/);
    for (const api of OPENSTACK_APIS)
      expect(metrics).toMatch(new RegExp(`kronos_openstack_requests_total\\{[^}]*api="${api}"`));
    expect(metrics).toMatch(/kronos_hosts\{[^}]*state="disabled"[^}]*\} 1/);
    expect(metrics).toMatch(/kronos_hosts\{[^}]*state="up"[^}]*\} 11/);
    expect(metrics).toMatch(/kronos_policy_matched\{[^}]*policy="cpu",kind="host"[^}]*\} 12/);
    expect(metrics).toMatch(/kronos_policy_matched\{[^}]*policy="cpu",kind="server"[^}]*\} 1\d\d/);
    one.child.kill('SIGTERM');
    expect(await one.ended).toBe(0);
    expect(one.output()).not.toContain('secret');
  });

  test('killed while it works leaves nothing that hinders its successor', async () => {
    const first = scorer();
    await first.says(/snapshot taken/);
    first.child.kill('SIGKILL');
    await first.ended;
    const before = (await bed.taken()).length;
    const second = scorer();
    const taken = await bed.until('snapshots of the second', (all) => all.length >= before + 2);
    expect(taken.map((one) => one.data.snapshotId)).toEqual([...new Set(taken.map((one) => one.data.snapshotId))]);
    second.child.kill('SIGINT');
    expect(await second.ended).toBe(0);
  });

  test('with wrong credentials goes on, and says in each snapshot what it cannot see', async () => {
    const before = (await bed.taken()).length;
    const one = scorer({ password: 'guessed' });
    const taken = await bed.until('a snapshot', (all) => all.length > before);
    expect(taken.at(-1)?.data.problems.map((problem) => problem.code)).toContain('aggregates-unknown');
    expect(taken.at(-1)?.data.problems[0]?.text).toContain('user admin');
    one.child.kill('SIGTERM');
    expect(await one.ended).toBe(0);
    expect(one.output()).not.toContain('guessed');
  });
});

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 4: producer (opentelemetry-proto, trace.proto, SpanKind). */
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

test('each snapshot is a trace of its own: its root, what was read for it, and the publish that its message names', async () => {
  const spans: SentSpan[] = [];
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body: { resourceSpans: { scopeSpans: { spans: SentSpan[] }[] }[] } = JSON.parse(await readText(request));
    spans.push(...body.resourceSpans.flatMap((one) => one.scopeSpans).flatMap((one) => one.spans));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  };
  const receiver = createServer((request, response) => void receive(request, response));
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  try {
    const one = scorer({ otlp: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}` });
    await one.says(/snapshot taken/);
    // The rest is sent before the process ends.
    one.child.kill('SIGTERM');
    expect(await one.ended).toBe(0);
    const root = spans.find((span) => span.name === 'scorer.cycle');
    if (root === undefined) throw new Error(`no root span among ${spans.map((span) => span.name).join(', ')}`);
    expect(root.parentSpanId ?? '').toBe('');
    const all = spans.filter((span) => span.traceId === root.traceId && span !== root);
    const requests = all.filter((span) => span.name === 'http.request');
    expect(requests.length).toBeGreaterThan(0);
    for (const span of requests) expect(span.parentSpanId).toBe(root.spanId);
    const appends = all.filter((span) => span.name === 'log.append');
    const inside = all.filter((span) => !requests.includes(span) && !appends.includes(span));
    expect(inside.map((span) => span.name).sort()).toEqual([
      'scorer.observe',
      'scorer.query',
      'scorer.query',
      'scorer.query',
      'scorer.query',
      'scorer.snapshot',
    ]);
    for (const span of inside) {
      expect(span.parentSpanId).toBe(root.spanId);
      expect(BigInt(span.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(root.startTimeUnixNano) - 5_000_000n);
      expect(BigInt(span.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(root.endTimeUnixNano) + 5_000_000n);
    }
    const publish = inside.find((span) => span.name === 'scorer.snapshot');
    expect(publish?.kind).toBe(4);
    expect(appends.map((span) => span.parentSpanId)).toEqual([publish?.spanId]);
    const id = root.attributes.find(({ key }) => key === 'kronos.snapshot.id')?.value.stringValue;
    const messages = bed.log.tail({ families: ['snapshots'], since: 'all', end: true });
    const traceparents: (string | null)[] = [];
    for await (const { message, traceparent } of messages) {
      if ((message as SnapshotTaken).data.snapshotId === id) traceparents.push(traceparent);
    }
    expect(traceparents).toEqual([`00-${root.traceId}-${appends[0]?.spanId}-01`]);
  } finally {
    receiver.close();
  }
});
