import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { defaultConfig } from '@kronos/config';
import { describe, expect, it } from 'vitest';
import { ownAddress } from './address.ts';
import { openJsonLog } from './jsonLog.ts';
import { keepRunning, restartWaitMs } from './keeper.ts';

describe('the address of the own nats-server', () => {
  const { nats, ...rest } = defaultConfig;
  const of = (changed: Partial<typeof nats>) => ownAddress({ nats: { ...nats, ...changed }, ...rest });

  it('is that of [nats] servers, with the port of NATS when it has none', () => {
    expect(of({ servers: ['nats://127.0.0.1:5222'] })).toEqual({ host: '127.0.0.1', port: 5222 });
    expect(of({ servers: ['nats://localhost'] })).toEqual({ host: '127.0.0.1', port: 4222 });
    expect(of({ servers: ['nats://[::1]:4223'] })).toEqual({ host: '::1', port: 4223 });
  });

  it.each([
    ['several servers', { servers: ['nats://127.0.0.1:1', 'nats://127.0.0.1:2'] }],
    ['another machine', { servers: ['nats://10.0.0.7:4222'] }],
    ['every interface', { servers: ['nats://0.0.0.0:4222'] }],
    ['TLS', { servers: ['tls://127.0.0.1:4222'] }],
    ['a certificate authority', { tlsCa: '/etc/ca.pem' }],
    ['more copies than servers', { replicas: 3 }],
  ])('a configuration with %s is refused', (_, changed) => {
    expect(() => of(changed)).toThrow(/\[nats\]/);
  });
});

describe('a kept process', () => {
  it('waits longer after each end, and at most a minute', () => {
    expect([1, 2, 3, 6, 7, 500].map(restartWaitMs)).toEqual([1000, 2000, 4000, 32_000, 60_000, 60_000]);
  });

  it('starts again after it ended, and not after it was stopped', async () => {
    const lines: string[] = [];
    const ends: string[] = [];
    const starts: (() => void)[] = [];
    // Starts the program again when the test says so.
    const after = (_: number, act: () => void) => {
      starts.push(act);
      return () => {};
    };
    const clock = { ...systemClock, after };
    const script = 'console.log("here"); process.on("SIGTERM", () => process.exit(0)); setInterval(() => {}, 1e6)';
    const program = { name: 'it', command: process.execPath, args: ['-e', script], env: process.env };
    const keeper = keepRunning(program, clock, {
      onLine: (line) => lines.push(line),
      onEnd: (how, waitMs) => ends.push(`${how}, ${waitMs}`),
    });
    await until(() => lines.length === 1);
    process.kill(keeper.pid ?? 0, 'SIGKILL');
    await until(() => ends.length === 1);
    expect(ends).toEqual(['SIGKILL, 1000']);
    expect(keeper.pid).toBeNull();
    starts.pop()?.();
    await until(() => lines.length === 2);
    await keeper.stop();
    expect([keeper.pid, ends.length]).toEqual([null, 1]);
  });

  it('a program that is not there is named, and tried again', async () => {
    const ends: string[] = [];
    const program = { name: 'it', command: '/nonexistent/program', args: [], env: {} };
    const clock = { ...systemClock, after: () => () => {} };
    const keeper = keepRunning(program, clock, { onLine: () => {}, onEnd: (how) => ends.push(how) });
    await until(() => ends.length === 1);
    expect(ends[0]).toMatch('/nonexistent/program');
    await keeper.stop();
  });
});

describe('the one log', () => {
  it('has one JSON object per line, and one older file', () => {
    const directory = mkdtempSync(join(tmpdir(), 'kronos-up-log-'));
    try {
      const path = join(directory, 'kronos.log');
      const log = openJsonLog(path, () => 0, 60);
      log.line('planner', '{"service":"planner","message":"starting"}');
      log.line('nats-server', 'Server is ready');
      log.line('nats-server', '');
      log.line('ledger', 'last');
      log.close();
      const read = (name: string) =>
        readFileSync(name, 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as { service: string; message: string });
      expect(read(`${path}.1`).map(({ message }) => message)).toEqual(['starting', 'Server is ready']);
      expect(read(path)).toEqual([{ time: '1970-01-01T00:00:00.000Z', service: 'ledger', message: 'last' }]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
