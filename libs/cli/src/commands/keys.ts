import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { userKey } from '@kronos/eventlog/local';
import { UsageError } from '../errors.ts';
import type { Shell } from '../shell.ts';

/** The users of deploy/nats/accounts-nkeys.conf. */
export const NATS_USERS = [
  'scorer',
  'planner',
  'executor',
  'ledger',
  'operator',
  'console',
  'viewer',
  'restorer',
  'custodian',
  'provisioner',
  'sys',
] as const;

/** kronos keys: a seed for each NATS user, and the public keys for the servers. Seeds that are there stay. */
export function keys(shell: Shell, directory: string): void {
  const lines: string[] = [];
  for (const user of NATS_USERS) {
    const file = join(directory, user, 'nats.nk');
    mkdirSync(join(directory, user), { recursive: true, mode: 0o700 });
    const { publicKey } = existsSync(file) ? keyOf(file) : made(file);
    lines.push(`KRONOS_NATS_${user.toUpperCase()}_NKEY=${publicKey}\n`);
  }
  writeFileSync(join(directory, 'nats.env'), lines.join(''));
  shell.terminal.out(
    `Seeds: ${join(directory, 'USER', 'nats.nk')}, each for its service alone\nPublic keys: ${join(directory, 'nats.env')}, the environment of every nats-server\n`,
  );
}

function made(file: string): ReturnType<typeof userKey> {
  const key = userKey();
  writeFileSync(file, key.seed, { mode: 0o600 });
  return key;
}

function keyOf(file: string): ReturnType<typeof userKey> {
  try {
    return userKey(readFileSync(file, 'utf8'));
  } catch {
    throw new UsageError(`${file} is no seed of a NATS user`, 'Delete it: the command then makes a new one.');
  }
}
