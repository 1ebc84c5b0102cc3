import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { subject } from '@kronos/contracts';
import { connect, credsAuthenticator, nkeys, PermissionViolationError } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startNatsServer } from '../local/server.ts';
import { accountsByNsc, type Permissions, permissionsOf, users } from './permissions.ts';

type KeyPair = ReturnType<typeof nkeys.createUser>;

/** A claim as nsc signs it. Source: nats-io/jwt v2, claims.go. */
function token(by: KeyPair, of: KeyPair, name: string, nats: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claim = { jti: name, iat: 1_780_000_000, iss: by.getPublicKey(), sub: of.getPublicKey(), name, nats };
  const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claim)}`;
  return `${signed}.${Buffer.from(by.sign(Buffer.from(signed))).toString('base64url')}`;
}

const UNLIMITED = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
const STORAGE = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: 1024 };

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kronos-nsc-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** The calls that the script makes to an nsc without users. A program in its place writes the arguments of each call as one line. */
async function asked(): Promise<string[][]> {
  const calls = join(directory, 'calls');
  const nsc = join(directory, 'nsc');
  const script = join(directory, 'accounts-nsc.sh');
  await writeFile(nsc, `#!/bin/sh\n(printf '%s\\t' "$@"; echo) >> ${calls}\n[ "$1 $2" != 'describe user' ]\n`);
  await chmod(nsc, 0o755);
  await writeFile(script, accountsByNsc());
  const env = { ...process.env, PATH: `${directory}:${process.env.PATH}` };
  await promisify(execFile)('sh', [script, join(directory, 'creds')], { env });
  const text = await readFile(calls, 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t').slice(0, -1));
}

it('the script makes every user with its rights, and a credentials file for each', async () => {
  const calls = await asked();
  const added = calls.flatMap((args) => (args[0] === 'add' && args[1] === 'user' ? [[args[5], args[7], args[9]]] : []));
  expect(added).toEqual(
    Object.entries(users).map(([user, rights]) => {
      const { publish, subscribe } = permissionsOf(user, rights);
      return [user, publish.join(','), subscribe.join(',')];
    }),
  );
  expect(calls.find(([verb]) => verb === 'edit')).toContain('--js-consumer');
  const files = await readdir(join(directory, 'creds'));
  expect(files.sort()).toEqual(
    Object.keys(users)
      .map((user) => `${user}.creds`)
      .sort(),
  );
});

it('a server that trusts an operator grants these rights to users with credentials files', async () => {
  const [operator, system, account] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const preloaded = (of: KeyPair, name: string, limits: object) =>
    `${of.getPublicKey()}: ${token(operator, of, name, { type: 'account', version: 2, limits: { ...UNLIMITED, ...limits } })}`;
  const server = await startNatsServer({
    config: [
      `operator: ${token(operator, operator, 'O', { type: 'operator', version: 2 })}`,
      `system_account: ${system.getPublicKey()}`,
      'resolver: MEMORY',
      `resolver_preload: { ${preloaded(system, 'SYS', {})}, ${preloaded(account, 'KRONOS', STORAGE)} }`,
    ].join('\n'),
  });
  const creds = (name: string, { publish, subscribe }: Permissions): Uint8Array => {
    const user = nkeys.createUser();
    const rights = { pub: { allow: publish }, sub: { allow: subscribe }, subs: -1, data: -1, payload: -1 };
    const jwt = token(account, user, name, { type: 'user', version: 2, ...rights });
    const seed = new TextDecoder().decode(user.getSeed());
    return Buffer.from(
      `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
    );
  };
  const refused = async (name: string, subjects: readonly string[]): Promise<string[]> => {
    const rights = users[name];
    if (rights === undefined) throw new Error(`no user ${name}`);
    const nc = await connect({
      servers: server.url,
      authenticator: credsAuthenticator(creds(name, permissionsOf(name, rights))),
      inboxPrefix: `_INBOX_${name}`,
    });
    const found: string[] = [];
    const watching = (async () => {
      for await (const status of nc.status())
        if (status.type === 'error' && status.error instanceof PermissionViolationError)
          found.push(status.error.subject);
    })();
    for (const one of subjects) nc.publish(one, '{}');
    await nc.flush();
    await nc.close();
    await watching;
    return found;
  };
  try {
    const [plans, results, snapshots] = [
      subject('plans', 'gpu'),
      subject('results', 'gpu'),
      subject('snapshots', 'gpu'),
    ];
    expect(await refused('planner', [plans, results, snapshots])).toEqual([snapshots]);
    expect(await refused('executor', [plans, results, snapshots])).toEqual([plans, snapshots]);
    expect(await refused('scorer', [plans, results, snapshots])).toEqual([plans, results]);
    expect(await refused('viewer', [plans, results, snapshots, '$JS.API.STREAM.DELETE.KRONOS_LOG'])).toHaveLength(4);
  } finally {
    await server.stop();
  }
});
