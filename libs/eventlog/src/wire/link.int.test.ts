import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { connect, nkeys, TimeoutError } from '@nats-io/transport-node';
import { afterAll, expect, test } from 'vitest';
import { failure } from '../../testing/async.ts';
import { pausedEvent, testLimits } from '../../testing/messages.ts';
import { onEachServer } from '../../testing/suite.ts';
import { connectEventLog } from '../index.ts';
import { freePorts } from '../local/ports.ts';
import { startNatsServer } from '../local/server.ts';
import { atLeast } from './capabilities.ts';
import { NatsRefused, NatsUnreachable, ServerTooOld, StreamUnavailable } from './errors.ts';
import { Link } from './link.ts';
import { natsWire } from './wire.ts';

const dir = mkdtempSync(join(tmpdir(), 'kronos-link-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const hasOpenssl = (() => {
  try {
    execFileSync('openssl', ['version']);
    return true;
  } catch {
    return false;
  }
})();

onEachServer('the connection', { concurrent: true }, (bench) => {
  test('no server: one clear error within the limit, with the servers and without the password', async () => {
    const [port] = await freePorts(1);
    const error = await failure(
      connectEventLog({
        servers: [`nats://me:hidden@127.0.0.1:${port}`],
        name: 'test',
        user: 'me',
        password: 'hidden',
        connectTimeoutMs: 700,
      }),
    );
    expect(error).toBeInstanceOf(NatsUnreachable);
    expect(error).toMatchObject({ code: 'KRONOS_NATS_UNREACHABLE', servers: [`127.0.0.1:${port}`] });
    expect(String(error)).toContain(`127.0.0.1:${port}`);
    expect(String(error)).not.toContain('hidden');
  });

  test('a command asks each server once and waits for none', async () => {
    let asked = 0;
    const silent = createServer((socket) => {
      asked++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    // Its time is over once it has asked again, however slow this machine is.
    const clock = { ...systemClock, monotonic: () => (asked > 2 ? 600_000 : 0) };
    const connectTo = (more: object) =>
      failure(connectEventLog({ servers: [`127.0.0.1:${port}`], name: 'cli', ...more }, {}, { ...natsWire, clock }));
    expect(await connectTo({ connectOnce: true, connectTimeoutMs: 600_000 })).toBeInstanceOf(NatsUnreachable);
    expect(asked).toBe(1);
    expect(await connectTo({ connectTimeoutMs: 60_000 })).toBeInstanceOf(NatsUnreachable);
    expect(asked).toBeGreaterThan(2);
    silent.close();
  });

  test('a server without JetStream is an error at once that says so', async () => {
    const log = await bench.connect(await bench.server({ jetstream: 'enabled: false' }), {
      requestTimeoutMs: 600_000,
    });
    const wanted = { limits: testLimits, replicas: 1, aggregates: [] };
    for (const act of [() => log.provision(wanted), () => log.lastSequence('KRONOS_LOG')]) {
      const error = await failure(act());
      expect(error).toBeInstanceOf(StreamUnavailable);
      expect(String(error)).toMatch(
        /JetStream is not enabled on the NATS server 127\.0\.0\.1:\d+: add a jetstream block/,
      );
    }
  });

  test('a server that comes up within the limit is found', async () => {
    const [port = 0] = await freePorts(1);
    const connecting = connectEventLog({ servers: [`127.0.0.1:${port}`], name: 'test', connectTimeoutMs: 120_000 });
    bench.closing.add(await startNatsServer({ server: bench.found, port }));
    const log = bench.closing.add(await connecting);
    expect(log.healthy().ok).toBe(true);
  });

  test('wrong credentials: refused at once, without the password', async () => {
    const server = await bench.server({ config: 'authorization { user: me, password: right }' });
    const error = await failure(
      bench.connect(server, { user: 'me', password: 'wrong-secret', connectTimeoutMs: 3_600_000 }),
    );
    expect(error).toBeInstanceOf(NatsRefused);
    expect(String(error)).not.toContain('wrong-secret');
    expect((await bench.connect(server, { user: 'me', password: 'right' })).healthy().ok).toBe(true);
  });

  test('an nkey, from a file that is read again at each connect', async () => {
    const [first, second] = [nkeys.createUser(), nkeys.createUser()];
    const seed = (pair: typeof first) => new TextDecoder().decode(pair.getSeed());
    const file = join(dir, `seed-${bench.found.version}`);
    writeFileSync(file, `${seed(first)}\n`);
    const users = (pair: typeof first) => `authorization { users: [ { nkey: ${pair.getPublicKey()} } ] }`;
    const server = await bench.server({ config: users(first) });
    const log = await bench.connect(server, { nkeySeedFile: file });
    // The key is changed at both ends.
    writeFileSync(file, seed(second));
    await server.kill();
    const renewed = bench.closing.add(
      await startNatsServer({ server: bench.found, port: server.port, config: users(second) }),
    );
    await until(() => log.healthy().ok);
    expect(renewed.logText()).not.toContain('authentication error');
  });

  test('credentials that cannot be used are named before anything is tried, without what they hold', async () => {
    const server = await bench.server();
    const seed = 'SUNOTASEEDBUTASECRET';
    const wrong = join(dir, 'wrong');
    writeFileSync(wrong, seed);
    const absent = join(dir, 'not-there');
    for (const bad of [
      { nkeySeedFile: wrong },
      { nkeySeedFile: absent },
      { credentialsFile: wrong },
      { credentialsFile: absent },
    ]) {
      const error = await failure(bench.connect(server, bad));
      expect(error).toBeInstanceOf(NatsRefused);
      expect(String(error)).not.toContain(seed);
    }
  });

  test('it never gives up: the client by itself closes for good after its attempts', async () => {
    const { server, log } = await bench.provisioned();
    const bare = await connect({
      servers: server.url,
      maxReconnectAttempts: 2,
      reconnectTimeWait: 50,
      reconnectJitter: 0,
    });
    const gone = bare.closed();
    await server.kill();
    await gone;
    expect(bare.isClosed()).toBe(true);
    await until(() => !log.healthy().ok);
    let attempts = 0;
    const refusing = createServer((socket) => {
      attempts++;
      socket.destroy();
    }).listen(server.port, '127.0.0.1');
    // The client's own limit.
    await until(() => attempts > 10);
    await new Promise((resolve) => refusing.close(resolve));
    await server.restart();
    await until(() => log.healthy().ok);
    expect(await log.append(pausedEvent('back'))).toEqual({ sequence: 1, duplicate: false });
  });

  test('a server that refuses the credentials for a while is tried on', async () => {
    const config = (password: string) => `authorization { user: me, password: ${password} }`;
    const server = await bench.server({ config: config('right') });
    const seen: string[] = [];
    const log = await bench.connect(
      server,
      { user: 'me', password: 'right' },
      { onStatus: ({ type, detail }) => seen.push(`${type} ${detail}`) },
    );
    await server.kill();
    const other = await startNatsServer({ server: bench.found, port: server.port, config: config('changed') });
    const refusals = () => seen.filter((s) => /authorization violation/i.test(s)).length;
    await until(() => refusals() >= 3);
    await other.stop();
    expect(log.healthy().ok).toBe(false);
    await server.restart();
    await until(() => log.healthy().ok);
    expect(seen.join('\n')).not.toContain('right');
  });

  test('a process that did not run while the server answered asks again', async () => {
    const server = await bench.server();
    let jumpedMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + jumpedMs };
    const link = await Link.open({ servers: [server.url], name: 'test' }, {}, { ...natsWire, clock });
    bench.closing.add(link);
    let asked = 0;
    const ask = async () => {
      asked++;
      if (asked > 1) return 'the answer';
      // A long computation: when it is over, the timer of the request fires before the answer is read.
      jumpedMs += 60_000;
      throw new TimeoutError();
    };
    expect(await link.insist(ask, 'something')).toBe('the answer');
  });

  test('a server of the list that was down at first is known later', async () => {
    const [late = 0] = await freePorts(1);
    const first = await bench.server();
    const log = bench.closing.add(await connectEventLog({ servers: [`127.0.0.1:${late}`, first.url], name: 'test' }));
    const second = bench.closing.add(await startNatsServer({ server: bench.found, port: late }));
    await first.kill();
    await until(() => log.healthy().ok && /\[INF\]|Server is ready/.test(second.logText()));
  });

  test.runIf(hasOpenssl)('TLS with an authority of our own, and only with it', async () => {
    const at = (name: string) => join(dir, `${bench.found.version}-${name}`);
    // Beside the event loop: a connection of another test must not wait for it.
    await promisify(execFile)('openssl', [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
        '-subj',
        '/CN=localhost',
      ],
      ...['-addext', 'subjectAltName=DNS:localhost', '-keyout', at('key.pem'), '-out', at('cert.pem')],
    ]);
    const config = `tls { cert_file: "${at('cert.pem')}", key_file: "${at('key.pem')}" }`;
    const server = await bench.server({ config });
    const named = { url: `localhost:${server.port}` };
    const log = await bench.connect(named, { tls: { caFile: at('cert.pem') } });
    expect(log.healthy().ok).toBe(true);
    expect(await failure(bench.connect(named, { tls: {}, connectTimeoutMs: 1_000 }))).toBeInstanceOf(NatsUnreachable);
  });

  test('three replicas refuse an old server, before anything is done', async () => {
    const server = await bench.server();
    const old = !atLeast(bench.found.version, '2.11.0');
    const attempt = bench.connect(server, { replicas: 3 });
    if (old) expect(await failure(attempt)).toBeInstanceOf(ServerTooOld);
    else expect((await attempt).server.capabilities.replicas).toBe(true);
    const log = await bench.connect(server);
    const wanted = { limits: testLimits, replicas: 3, aggregates: [] };
    expect(await failure(log.provision(wanted))).toMatchObject({
      code: old ? 'KRONOS_SERVER_TOO_OLD' : 'KRONOS_PROVISION_REFUSED',
    });
  });
});
