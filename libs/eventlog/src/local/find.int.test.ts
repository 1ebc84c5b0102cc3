import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { failure } from '../../testing/async.ts';
import { ServerNotFound } from '../wire/errors.ts';
import { findNatsServer } from './find.ts';
import { startNatsServer } from './server.ts';

const dir = mkdtempSync(join(tmpdir(), 'kronos-find-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const real = await findNatsServer('any');

/** A program that claims to be a nats-server of this version. */
function pretender(name: string, version: string): string {
  const path = join(dir, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  chmodSync(path, 0o755);
  return path;
}

test('KRONOS_NATS_SERVER wins, and is an error when it is no server or too old', async () => {
  expect(await findNatsServer('any', { KRONOS_NATS_SERVER: real.path })).toMatchObject({ version: real.version });
  const missing = await failure(findNatsServer('any', { KRONOS_NATS_SERVER: join(dir, 'none') }));
  expect(missing).toBeInstanceOf(ServerNotFound);
  const old = await failure(findNatsServer('any', { KRONOS_NATS_SERVER: pretender('old', '2.8.4') }));
  expect(String(old)).toContain('2.8.4');
});

test('the cache is looked at, also for the newest', async () => {
  const cache = join(dir, 'cache');
  const path = pretender('cache/kronos/nats-server-go/nats-server', '2.99.0');
  expect(await findNatsServer('newest', { XDG_CACHE_HOME: cache, PATH: '' })).toMatchObject({
    path,
    version: '2.99.0',
  });
});

test('where nothing can be had the error says how to get it', async () => {
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  // The one that is named may be new.
  const old = pretender('no-newer', '2.9.0');
  const error = await failure(
    findNatsServer('newest', { PATH: bin, XDG_CACHE_HOME: join(dir, 'empty'), KRONOS_NATS_SERVER: old }),
  );
  expect(error).toBeInstanceOf(ServerNotFound);
  expect(String(error)).toContain('KRONOS_NATS_SERVER');
});

test('servers get ports of their own, and a configuration that is wrong is shown', async () => {
  const [a, b] = await Promise.all([startNatsServer({ server: real }), startNatsServer({ server: real })]);
  expect(a.port).not.toBe(b.port);
  expect(a.version).toBe(real.version);
  await Promise.all([a.stop(), b.stop()]);
  const error = await failure(startNatsServer({ server: real, config: 'no_such_field: 1' }));
  expect(String(error)).toContain('no_such_field');
});
