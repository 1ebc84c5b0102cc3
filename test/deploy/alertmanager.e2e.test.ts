/** Alarms in a real Alertmanager: what is sent appears, is there once however often it is sent, and ends. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { Secret } from '@kronos/config';
import type { AlarmRaised } from '@kronos/contracts';
import { cacheDir, freePorts, unpackDebian } from '@kronos/eventlog/testing';
import { noticeOf, openSender } from '@kronos/notify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runHere } from '../e2e/command.ts';

const CACHED = 'alertmanager-debian';
const root = join(cacheDir(), CACHED);
const program = join(root, 'usr/bin/prometheus-alertmanager');
const trouble = existsSync(program)
  ? null
  : await unpackDebian(process.env, CACHED, { packages: ['prometheus-alertmanager'] }).then(
      () => null,
      (error: unknown) => `prometheus-alertmanager cannot be unpacked: ${String(error)}`,
    );
/** It reads templates only from /usr/share, so it runs in its own mount namespace with the package's templates there. */
const ALONE = [
  '-rm',
  'sh',
  '-c',
  'mount --bind "$0/usr/share" /usr/share && exec "$0/usr/bin/prometheus-alertmanager" "$@"',
];
const missing =
  trouble ??
  (spawnSync('unshare', ['-rm', 'true']).status === 0
    ? null
    : 'this machine allows no mount namespaces, which the package needs where it is not installed');
if (missing !== null) console.warn(`skipped: ${missing}`);

type Alert = {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
  readonly status: { readonly state: string };
};

describe.runIf(missing === null)('an Alertmanager', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-alertmanager-'));
  let child: ChildProcess;
  let url = '';
  const active = async (): Promise<Alert[]> =>
    (await fetch(`${url}/api/v2/alerts`).then((response) => response.json())) as Alert[];

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    const file = join(directory, 'alertmanager.yml');
    writeFileSync(file, JSON.stringify({ route: { receiver: 'none' }, receivers: [{ name: 'none' }] }));
    child = spawn(
      'unshare',
      [
        ...ALONE,
        root,
        `--config.file=${file}`,
        `--storage.path=${join(directory, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--cluster.listen-address=',
      ],
      { stdio: 'ignore' },
    );
    await until(async () => (await fetch(`${url}/-/ready`).catch(() => null))?.ok);
  });
  afterAll(async () => {
    if (child?.exitCode === null) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    }
    rmSync(directory, { recursive: true, force: true });
  });

  it('takes the message of kronos notify test', async () => {
    const conf = join(directory, 'kronos.conf');
    writeFileSync(conf, `[engine]\naggregates = gpu\n[notify:am]\nformat = alertmanager\nurl = ${url}\n`);
    const { status, text } = await runHere(['notify', 'test', 'am', '-c', conf]);
    expect(status, text).toBe(0);
    expect(text).toContain(`delivered: [notify:am] (alertmanager) at ${url}`);
    const found = await until(async () => (await active()).find(({ labels }) => labels.cause === 'test'));
    expect(found.status.state).toBe('active');
  });

  it('shows an alarm once, however often it is told, and no longer when it is over', async () => {
    const sink = {
      url: new Secret(`${url}/`),
      urlFile: null,
      format: 'alertmanager',
      types: ['alarm.*'],
      aggregates: ['*'],
      secret: null,
      secretFile: null,
      authorization: null,
      authorizationFile: null,
      caCert: null,
      timeout: 10,
    } as const;
    const sender = openSender('am', sink, 'kronos/test');
    const time = new Date(Date.now() - 60_000).toISOString();
    const { key, ...data } = { key: 'host-down/gpu', code: 'host-down', about: 'gpu', text: 'cmp1 is "down"\\ <&>' };
    const raised: AlarmRaised = {
      type: 'alarm.raised',
      version: 1,
      id: 'a',
      time,
      aggregate: 'Zürich {x="1"}',
      by: { service: 'ledger', instance: 'l', version: '1' },
      correlationId: 'a',
      causationId: null,
      data: { key, ...data, remedy: 'Repair it.', runbook: 'docs/runbook.md#kronoshostdown', explains: [] },
    };
    const place = { stream: 'KRONOS_ALARMS', sequence: 1 };
    for (let i = 0; i < 3; i++)
      expect(await sender.sendAlerts([noticeOf(raised, place)])).toMatchObject({ status: 200 });
    const own = async () => (await active()).filter(({ labels }) => labels.alarm === key);
    await until(async () => (await own()).length > 0);
    expect(await own()).toMatchObject([
      {
        labels: { alertname: 'KronosAlarm', cause: 'host-down', aggregate: 'Zürich {x="1"}' },
        annotations: { summary: 'gpu: cmp1 is "down"\\ <&>', description: 'Repair it.' },
      },
    ]);
    expect(Date.parse((await own())[0]?.startsAt ?? '')).toBe(Date.parse(time));
    const resolved = {
      ...raised,
      type: 'alarm.resolved',
      time: new Date().toISOString(),
      data: { key, ...data, raisedAt: time },
    } as const;
    expect(await sender.sendAlerts([noticeOf(resolved, place)])).toMatchObject({ status: 200 });
    await until(async () => (await own()).length === 0);
    await sender.close();
  });
});
