/** `deploy/nats/accounts-nsc.sh` with the real nsc, and a server that trusts the operator which nsc made. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheDir, findNatsServer, onPath } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { permissionsOf, users } from '../../libs/eventlog/src/admin/permissions.ts';
import { WATCHER } from '../e2e/users.ts';
import { runUnderUsers } from './underUsers.ts';

const run = promisify(execFile);
const script = fileURLToPath(new URL('../../deploy/nats/accounts-nsc.sh', import.meta.url));
const nsc = onPath('nsc', process.env, [join(cacheDir(), 'gobin')]);
if (nsc === null) console.warn('skipped: there is no nsc; with Go, `node scripts/goTools.mjs nsc` builds it');

type Claim = {
  readonly nats: Readonly<Record<'pub' | 'sub', { readonly allow?: string[]; readonly deny?: string[] }>>;
};

describe.skipIf(nsc === null)('the users that nsc makes', () => {
  let directory = '';
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-nsc-'));
    const env = {
      ...process.env,
      PATH: [dirname(nsc ?? ''), process.env.PATH].join(delimiter),
      ...Object.fromEntries(
        ['HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'NSC_HOME', 'NKEYS_PATH'].map((name) => [
          name,
          join(directory, name.toLowerCase()),
        ]),
      ),
    };
    const call = (command: string, ...args: string[]) => run(command, args, { env, cwd: directory });
    await call('nsc', 'add', 'operator', '--name', 'cloud', '--sys');
    await call('sh', script, directory);
    await call('nsc', 'add', 'user', '--account', 'KRONOS', '--name', WATCHER);
    const watcher = await call('nsc', 'generate', 'creds', '--account', 'KRONOS', '--name', WATCHER);
    writeFileSync(credentials(WATCHER), watcher.stdout);
    await call('nsc', 'generate', 'config', '--mem-resolver', '--config-file', join(directory, 'accounts.conf'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const credentials = (user: string) => join(directory, `${user}.creds`);

  it.each(Object.entries(users))('%s has its own rights, and no other', (user, rights) => {
    const [, token = ''] =
      /BEGIN NATS USER JWT-+\n\S+?\.(\S+)\.\S+\n/.exec(readFileSync(credentials(user), 'utf8')) ?? [];
    const { pub, sub } = (JSON.parse(Buffer.from(token, 'base64url').toString()) as Claim).nats;
    const { publish, subscribe } = permissionsOf(user, rights);
    expect({ publish: pub.allow?.sort(), subscribe: sub.allow?.sort() }).toEqual({
      publish: [...publish].sort(),
      subscribe: [...subscribe].sort(),
    });
    expect([pub.deny, sub.deny]).toEqual([undefined, undefined]);
  });

  it('are enough for all the work of the services and of people', async () => {
    await runUnderUsers(await findNatsServer('newest'), {
      config: readFileSync(join(directory, 'accounts.conf'), 'utf8'),
      as: (user) => ({ OS_NATS__CREDENTIALS_FILE: credentials(user), OS_NATS__INBOX_PREFIX: `_INBOX_${user}` }),
    });
  });
});
