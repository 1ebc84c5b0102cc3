import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeEvidence } from '@kronos/evidence';
import { random } from '@kronos/projections/testing';
import { recordRange } from '@kronos/replay';
import { memoryHistory, operate } from '@kronos/replay/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kronos } from './world.ts';

let root: string;
let file: string;
let html: string;
const operation = operate({
  seed: 11,
  cycles: 30,
  aggregates: ['gpu'],
  hosts: 5,
  vmsPerHost: 5,
  searchWorkLimit: 40_000,
  failures: 0.1,
  commands: 0.05,
});

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-evidence-'));
  const about = { range: {}, anonymize: false, madeBy: 'kronos test', nowMs: Date.parse('2026-01-06T00:00:00Z') };
  await recordRange(memoryHistory(operation.events, operation.snapshots), join(root, 'case'), about);
  for (const name of ['key', 'other']) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    await writeFile(join(root, `${name}.pem`), privateKey.export({ format: 'pem', type: 'pkcs8' }));
    await writeFile(join(root, `${name}.pub`), publicKey.export({ format: 'pem', type: 'spki' }));
  }
  file = join(root, 'case.html');
  const { status, err } = await make('--to', file, '--key', join(root, 'key.pem'));
  expect(status, err).toBe(0);
  html = await readFile(file, 'utf8');
});
afterAll(() => rm(root, { recursive: true }));

const make = (...args: string[]) =>
  kronos(['evidence', '--in', join(root, 'case'), '--since', '2026-01-01T00:00Z', ...args]);
const verify = (path: string, ...args: string[]) => kronos(['evidence', 'verify', path, ...args]);
const withText = async (text: string): Promise<string> => {
  const path = join(root, 'changed.html');
  await writeFile(path, text);
  return path;
};
/** The page with one letter of a part changed. */
const changedIn = (part: string): string => {
  const at = html.indexOf(`id="${part}">`) + `id="${part}">`.length + 200;
  return `${html.slice(0, at)}${html[at] === 'A' ? 'B' : 'A'}${html.slice(at + 1)}`;
};

describe('kronos evidence', () => {
  it('of a log with decisions of an older planner, and without some snapshots, is as it was made', async () => {
    const older = join(root, 'older.html');
    const history = join(import.meta.dirname, '../../../test/histories/0.1.0');
    await kronos(['evidence', '--in', history, '--since', '2026-01-01T00:00Z', '--to', older]);
    const { status, out } = await verify(older);
    expect(out).toContain('is as it was made; ');
    expect(out).toMatch(
      /of 11 decisions made again are identical, \d+ of another planner version differ: check with the kronos/,
    );
    expect(status).toBe(0);
  });

  it('writes one file whose decisions are identical when they are made again', async () => {
    const { status, out } = await verify(file, '--key', join(root, 'key.pub'));
    expect(out).toContain('30 of 30 decisions made again are identical');
    expect(status).toBe(0);
    expect(html.length).toBeLessThan(3_000_000);
    expect(html).not.toMatch(/\b(?:src|href)=/);
  });

  it.each(['recording', 'snapshots', 'core', 'view'])('names a changed byte in the %s', async (part) => {
    const { status, out } = await verify(await withText(changedIn(part)));
    expect(status).toBe(1);
    expect(out).toContain(`${part}: was changed`);
  });

  it('names a changed byte in the manifest, whose signature does not fit any more', async () => {
    const { status, out } = await verify(await withText(changedIn('manifest')));
    expect(status).toBe(1);
    expect(out).toMatch(/manifest: was changed|signature: is not of this manifest|was changed/);
  });

  it('names a changed program of the page', async () => {
    const { status, out } = await verify(
      await withText(html.replace('Deciding', 'Dreaming').replace("'unable'", "'unible'")),
    );
    expect(status).toBe(1);
    expect(out).toContain('page: was changed');
  });

  it('refuses the signature of another key, and a file that is not signed, where a key is required', async () => {
    const other = await verify(file, '--key', join(root, 'other.pub'));
    expect(other.status).toBe(1);
    expect(other.out).toContain('signature: is of another key');
    const bare = join(root, 'bare.html');
    await make('--to', bare);
    const unsigned = await verify(bare, '--key', join(root, 'key.pub'));
    expect(unsigned.status).toBe(1);
    expect(unsigned.out).toContain('signature: there is none');
    expect((await verify(bare)).status).toBe(0);
  });

  it('refuses a signature that somebody else put there', async () => {
    const signature = /id="signature">([^<]*)</.exec(html)?.[1] ?? '';
    const { algorithm, publicKey, signature: signed } = JSON.parse(Buffer.from(signature, 'base64').toString());
    const turned = Buffer.from(signed, 'base64');
    turned[5] = (turned[5] ?? 0) ^ 1;
    const forged = JSON.stringify({ algorithm, publicKey, signature: turned.toString('base64') });
    const { status, out } = await verify(
      await withText(html.replace(signature, Buffer.from(forged).toString('base64'))),
    );
    expect(status).toBe(1);
    expect(out).toContain('signature: is not of this manifest');
  });

  it('is input for kronos replay and kronos plan --snapshot', async () => {
    const replayed = await kronos(['replay', file, '-o', 'json']);
    expect(replayed.status, replayed.err).toBe(0);
    expect(JSON.parse(replayed.out).totals).toMatchObject({ decisions: 30, identical: 30 });
    const planned = await kronos(['plan', '--snapshot', file]);
    expect(planned.status, planned.err).toBe(0);
    const changed = await kronos(['replay', await withText(changedIn('manifest')), '-o', 'json']);
    expect(changed.status).not.toBe(0);
  });

  it('has no name, address or uuid of the original when it is anonymised, and decides the same', async () => {
    const hidden = join(root, 'hidden.html');
    const { status, err } = await make('--to', hidden, '--anonymize');
    expect(status, err).toBe(0);
    const text = await readFile(hidden, 'utf8');
    const whole = [...text.matchAll(/id="(recording|snapshots)">([^<]*)</g)]
      .map(([, , packed = '']) =>
        execFileSync('gunzip', ['-c'], { input: Buffer.from(packed, 'base64'), maxBuffer: 1e9 }).toString(),
      )
      .join('');
    const names = new Set<string>();
    for (const { aggregate, hosts, servers, serverGroups } of operation.snapshots) {
      names.add(`"${aggregate}"`);
      for (const { name, hypervisorHostname, hypervisorId } of hosts)
        for (const one of [name, hypervisorHostname, hypervisorId]) names.add(one);
      for (const { id, name, internalName } of servers)
        for (const one of [id, name, internalName ?? id]) names.add(`${one}`);
      for (const { id, name } of serverGroups) for (const one of [id, name]) names.add(one);
    }
    const found = [...names].filter((name) => whole.includes(`"${name.replaceAll('"', '')}"`));
    expect(found).toEqual([]);
    const checked = await verify(hidden);
    expect(checked.status, checked.out).toBe(0);
  });

  it('takes the decision of one plan', async () => {
    const planned = operation.events.find(
      ({ event }) => event.type === 'cycle.decided' && event.data.plan !== null,
    )?.event;
    const id = planned?.type === 'cycle.decided' ? (planned.data.plan?.id ?? '') : '';
    const one = join(root, 'one.html');
    const made = await kronos(['evidence', '--in', join(root, 'case'), '--plan', id, '--to', one, '-o', 'json']);
    expect(made.status, made.err).toBe(0);
    expect(JSON.parse(made.out)).toMatchObject({ decisions: 1, snapshots: 1 });
    const none = await kronos(['evidence', '--in', join(root, 'case'), '--plan', 'none', '--to', one]);
    expect(none.status).toBe(2);
  });

  it('refuses more than fits, and says how many snapshots would', async () => {
    const history = memoryHistory(operation.events, operation.snapshots);
    const about = { range: {}, anonymize: false, keyFile: null, madeBy: 'kronos test', nowMs: 0 };
    const mostBytes = html.length - 10_000;
    await expect(makeEvidence({ history, ...about, mostBytes })).rejects.toThrow(
      /takes 0\.\d MB, more than 0 MB: about [12]?\d of its 30 snapshots fit/,
    );
  });

  it('needs a plan or a range, a key that signs, and a file that is evidence', async () => {
    expect((await kronos(['evidence', '--in', join(root, 'case')])).status).toBe(2);
    const badKey = await make('--to', file, '--key', join(root, 'key.pub'));
    expect(badKey.status).toBe(1);
    expect(badKey.err).toContain('openssl genpkey -algorithm ed25519');
    const none = await verify(await withText('<html></html>'));
    expect(none.status).toBe(1);
    expect(none.err).toContain('is no evidence of Kronos');
  });
});

describe.skipIf(process.env.KRONOS_NIGHTLY !== '1')(
  'a day of 40 hosts and 600 VMs with noisy loads, every night',
  () => {
    it('fits in 3 MB where the queries round loads to 3 places, and is as it was made', async () => {
      const chance = random(33);
      const noise = (): number => Math.sqrt(-2 * Math.log(1 - chance())) * Math.cos(2 * Math.PI * chance());
      const day = operate({
        seed: 33,
        cycles: 1440,
        aggregates: ['gpu'],
        hosts: 40,
        vmsPerHost: 15,
        searchWorkLimit: 2000,
        reading: (value) => Math.round(value * (1 + 0.02 * noise()) * 1000) / 1000,
      });
      const about = { range: {}, anonymize: false, keyFile: null, madeBy: 'kronos test', nowMs: 0 };
      const made = await makeEvidence({ history: memoryHistory(day.events, day.snapshots), ...about });
      expect(made.snapshots).toBe(1440);
      console.log(`${made.html.length} bytes`);
      expect(made.html.length).toBeLessThan(3_000_000);
      const { status, out } = await verify(await withText(made.html));
      expect([status, out]).toEqual([0, expect.stringContaining('1440 of 1440 decisions made again are identical')]);
    }, 3_600_000);
  },
);
