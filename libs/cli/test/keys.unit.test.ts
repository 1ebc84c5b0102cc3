import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { kronos } from './world.ts';

const directory = mkdtempSync(join(tmpdir(), 'kronos-keys-'));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it('makes a secret seed for every user of the servers, and keeps it the next time', async () => {
  expect(await kronos(['keys', directory])).toMatchObject({ status: 0, err: '' });
  const seed = join(directory, 'scorer/nats.nk');
  expect(readFileSync(seed, 'utf8')).toMatch(/^SU[A-Z2-7]{56}$/);
  expect(statSync(seed).mode & 0o777).toBe(0o600);
  const environment = readFileSync(join(directory, 'nats.env'), 'utf8');
  // The servers refuse to start while one of their variables is missing.
  const accounts = fileURLToPath(new URL('../../../deploy/nats/accounts-nkeys.conf', import.meta.url));
  const wanted = new Set(
    [...readFileSync(accounts, 'utf8').matchAll(/\$(KRONOS_NATS_\w+_NKEY)/g)].map(([, name]) => name),
  );
  expect(wanted.size).toBeGreaterThan(9);
  for (const name of wanted) expect(environment).toMatch(new RegExp(`^${name}=U[A-Z2-7]{55}$`, 'm'));

  await kronos(['keys', directory]);
  expect(readFileSync(join(directory, 'nats.env'), 'utf8')).toBe(environment);
  writeFileSync(seed, 'nonsense');
  const refused = await kronos(['keys', directory]);
  expect(refused).toMatchObject({ status: 2, err: expect.stringContaining('no seed of a NATS user') });
});
