/** `deploy/nats/accounts-nsc.sh` with the real nsc, over the users of a former release, and a server that trusts the operator which nsc made. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheDir, findNatsServer, onPath, startNatsServer } from '@kronos/eventlog/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permissionsOf, users } from '../../libs/eventlog/src/admin/permissions.ts';
import { WATCHER } from '../e2e/users.ts';
import { runUnderUsers } from './underUsers.ts';

const run = promisify(execFile);
const script = fileURLToPath(new URL('../../deploy/nats/accounts-nsc.sh', import.meta.url));
const nsc = onPath('nsc', process.env, [join(cacheDir(), 'gobin')]);
if (nsc === null)
  console.warn('skipped: there is no nsc; with Go, `node scripts/run.mjs node scripts/goTools.ts nsc` builds it');

type Claim = {
  /** The public key of the user. */
  readonly sub: string;
  readonly nats: Readonly<Record<'pub' | 'sub', { readonly allow?: string[]; readonly deny?: string[] }>> & {
    readonly src: readonly string[];
  };
};

/** The script of a former release: without one user, and with other rights for another. */
const former = readFileSync(script, 'utf8')
  .replace(/^user custodian (?:.*\n){3}/m, '')
  .replace(/(^user planner .*\n {2}')\$JS\.API\.INFO,/m, '$1kronos.former.*,kronos.former.>,');
const LOCAL = ['127.0.0.0/8'];

describe.skipIf(nsc === null)('the users that nsc makes', () => {
  let directory = '';
  const keys = new Map<string, string>();
  let formerly: readonly string[] = [];
  let consumers = 0;
  const call = (command: string, ...args: string[]) => {
    const places = ['HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'NSC_HOME', 'NKEYS_PATH'];
    const env = {
      ...process.env,
      PATH: [dirname(nsc ?? ''), process.env.PATH].join(delimiter),
      ...Object.fromEntries(places.map((name) => [name, join(directory, name.toLowerCase())])),
    };
    return run(command, args, { env, cwd: directory });
  };
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-nsc-'));
    await call('nsc', 'add', 'operator', '--name', 'cloud', '--sys');
    await call('sh', '-c', former, 'accounts-nsc.sh', directory);
    for (const user of Object.keys(users).filter((name) => name !== 'custodian')) keys.set(user, claimOf(user).sub);
    formerly = claimOf('planner').nats.pub.allow ?? [];
    await call('nsc', 'edit', 'user', '--account', 'KRONOS', '--name', 'planner', '--source-network', ...LOCAL);
    await call('nsc', 'edit', 'account', '--name', 'KRONOS', '--js-consumer', '2048');
    await call('sh', script, directory);
    const account = await call('nsc', 'describe', 'account', '--name', 'KRONOS', '--field', 'nats.limits.consumer');
    consumers = Number(account.stdout);
    await call('nsc', 'add', 'user', '--account', 'KRONOS', '--name', WATCHER);
    const watcher = await call('nsc', 'generate', 'creds', '--account', 'KRONOS', '--name', WATCHER);
    writeFileSync(credentials(WATCHER), watcher.stdout);
    await call('nsc', 'generate', 'config', '--mem-resolver', '--config-file', join(directory, 'accounts.conf'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const credentials = (user: string) => join(directory, `${user}.creds`);
  const claimOf = (user: string): Claim => {
    const [, token = ''] =
      /BEGIN NATS USER JWT-+\n\S+?\.(\S+)\.\S+\n/.exec(readFileSync(credentials(user), 'utf8')) ?? [];
    return JSON.parse(Buffer.from(token, 'base64url').toString()) as Claim;
  };

  it('are those of a former release, with their keys and with what the site has limited', () => {
    expect(keys.size).toBe(Object.keys(users).length - 1);
    expect(formerly).toEqual(expect.arrayContaining(['kronos.former.*', 'kronos.former.>']));
    expect(formerly).not.toContain('$JS.API.INFO');
    expect(new Map([...keys.keys()].map((user) => [user, claimOf(user).sub]))).toEqual(keys);
    expect(claimOf('planner').nats.src).toEqual(LOCAL);
    expect(consumers).toBe(2048);
  });

  it.each(Object.entries(users))('%s has its own rights, and no other', (user, rights) => {
    const { pub, sub } = claimOf(user).nats;
    const { publish, subscribe } = permissionsOf(user, rights);
    expect({ publish: pub.allow?.sort(), subscribe: sub.allow?.sort() }).toEqual({
      publish: [...publish].sort(),
      subscribe: [...subscribe].sort(),
    });
    expect([pub.deny, sub.deny]).toEqual([undefined, undefined]);
  });

  it('nsc push brings the account to a server that runs, and what is changed of it later', async () => {
    await call('nsc', 'generate', 'config', '--nats-resolver', '--config-file', join(directory, 'resolver.conf'));
    const config = readFileSync(join(directory, 'resolver.conf'), 'utf8');
    const place = JSON.stringify(join(directory, 'jwt'));
    const server = await startNatsServer({
      server: await findNatsServer('newest'),
      config: config.replace(/dir: .*$/m, `dir: ${place}`),
    });
    try {
      await call('nsc', 'edit', 'operator', '--account-jwt-server-url', server.url);
      const consumersOf = async (): Promise<number> => {
        const authenticator = credsAuthenticator(readFileSync(credentials('provisioner')));
        const inboxPrefix = '_INBOX_provisioner';
        const nc = await connect({ servers: server.url, authenticator, inboxPrefix, reconnect: false });
        try {
          return (await (await jetstreamManager(nc)).getAccountInfo()).limits.max_consumers;
        } finally {
          await nc.close();
        }
      };
      await expect(consumersOf()).rejects.toThrow(/Authorization Violation/);
      await call('nsc', 'push', '--account', 'KRONOS');
      expect(await consumersOf()).toBe(2048);
      await call('nsc', 'edit', 'account', '--name', 'KRONOS', '--js-consumer', '4096');
      await call('nsc', 'push', '--account', 'KRONOS');
      expect(await consumersOf()).toBe(4096);
    } finally {
      await server.stop();
    }
  });

  it('are enough for all the work of the services and of people', async () => {
    await runUnderUsers(await findNatsServer('newest'), {
      config: readFileSync(join(directory, 'accounts.conf'), 'utf8'),
      as: (user) => ({ OS_NATS__CREDENTIALS_FILE: credentials(user), OS_NATS__INBOX_PREFIX: `_INBOX_${user}` }),
    });
  });
});
