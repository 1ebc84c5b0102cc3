/** Alarms in a real Alertmanager: what is sent appears, is there once however often it is sent, and ends. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { Secret } from '@kronos/config';
import type { AlarmRaised } from '@kronos/contracts';
import { noticeOf, openSender } from '@kronos/notify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runHere } from '../e2e/command.ts';
import { noAlertmanager, startAlertmanager } from './alertmanager.ts';

const missing = await noAlertmanager();
if (missing !== null) console.warn(`skipped: ${missing}`);

describe.runIf(missing === null)('an Alertmanager', () => {
  const directory = missing === null ? mkdtempSync(join(tmpdir(), 'kronos-alertmanager-')) : '';
  let manager: Awaited<ReturnType<typeof startAlertmanager>>;
  const active = () => manager.active();

  beforeAll(async () => {
    manager = await startAlertmanager();
  });
  afterAll(async () => {
    await manager?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it('takes the message of kronos notify test', async () => {
    const conf = join(directory, 'kronos.conf');
    writeFileSync(conf, `[engine]\naggregates = gpu\n[notify:am]\nformat = alertmanager\nurl = ${manager.url}\n`);
    const { status, text } = await runHere(['notify', 'test', 'am', '-c', conf]);
    expect(status, text).toBe(0);
    expect(text).toContain(`delivered: [notify:am] (alertmanager) at ${manager.url}`);
    const found = await until(async () => (await active()).find(({ labels }) => labels.cause === 'test'));
    expect(found.status.state).toBe('active');
  });

  it('shows an alarm once, however often it is told, and no longer when it is over', async () => {
    const sink = {
      url: new Secret(`${manager.url}/`),
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
