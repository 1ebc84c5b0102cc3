import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { openArchive, readArchive } from '@kronos/archive';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliWorld, openCliWorld, type ShellOptions } from './world.ts';

const operation = { seed: 4, hosts: 3, vmsPerHost: 3, failures: 0.3, commands: 0.15, planner: 'greedy' } as const;
let full: CliWorld;
let empty: CliWorld;
let scratch = '';
const archive = () => join(scratch, 'archive');

beforeAll(async () => {
  full = await openCliWorld({ ...operation, cycles: 12 });
  empty = await openCliWorld({ ...operation, cycles: 0 });
  scratch = await mkdtemp(join(tmpdir(), 'kronos-cli-archive-'));
  const files = await openArchive(archive(), { maxFileBytes: 20_000 });
  for await (const event of full.log.copy())
    await files.write([{ ...event, storedAt: full.operation.events[event.sequence - 1]?.storedAt ?? 0 }]);
  await files.close();
});
afterAll(async () => {
  await full?.close();
  await empty?.close();
  await rm(scratch, { recursive: true, force: true });
});

const golden = async (world: CliWorld, line: string, name: string, options: ShellOptions = {}) => {
  const said = await world.kronos(
    line.split(' ').map((word) => (word.startsWith('/') ? join(scratch, word) : word)),
    { nowMs: Date.parse('2026-01-05T02:00:00Z'), ...options },
  );
  const errors = said.err === '' ? '' : `--- errors\n${said.err}`;
  const text = `$ kronos ${line}\n${said.out}${errors}--- status ${said.status}\n`;
  await expect(text.replaceAll(scratch, '')).toMatchFileSnapshot(`golden/outputs/${name}.golden.txt`);
  return said;
};

describe('kronos archive', () => {
  it('verifies one that is whole', async () => {
    await golden(full, 'archive verify /archive', 'archive-verify');
    const { out } = await golden(full, 'archive verify /archive --json', 'archive-verify-json');
    expect(JSON.parse(out)).toMatchObject({ first: 1, last: await full.log.lastSequence('KRONOS_LOG') });
  });

  it('finds what was changed in one, and restores nothing of it', async () => {
    const broken = join(scratch, 'broken');
    const files = await openArchive(broken, { maxFileBytes: 20_000 });
    for await (const event of readArchive(archive())) await files.write([event]);
    await files.close();
    const [name = ''] = (await readdir(broken)).sort();
    const text = gunzipSync(await readFile(join(broken, name))).toString();
    await writeFile(join(broken, name), gzipSync(text.replace('"subject":"kronos.plans.', '"subject":"kronos.plano.')));
    const { err } = await empty.kronos(['archive', 'verify', broken]);
    expect(err).toMatch(/events-0000000000000001.jsonl.gz: something above line 3 was changed .*events 1 to 1/);
    expect((await empty.kronos(['archive', 'restore', broken])).status).toBe(1);
    expect(await empty.log.lastSequence('KRONOS_LOG')).toBe(0);
  });

  it('says what is no archive', async () => {
    await golden(full, 'archive verify /nowhere', 'archive-verify-nowhere');
    await golden(full, 'archive restore /', 'archive-restore-nothing');
  });

  it('restores one onto an empty server, and again without harm', async () => {
    await golden(empty, 'archive restore /archive', 'archive-restore');
    await golden(empty, 'archive restore /archive', 'archive-restore-again');
    const copied = await Array.fromAsync(empty.log.copy());
    const original = await Array.fromAsync(full.log.copy());
    const plain = ({ sequence, subject, data }: (typeof copied)[number]) => [
      sequence,
      subject,
      Buffer.from(data).toString(),
    ];
    expect(copied.slice(0, -1).map(plain)).toEqual(original.map(plain));
    expect(JSON.parse(String(plain(copied[original.length] as (typeof copied)[number])[2]))).toMatchObject({
      type: 'installation.created',
      data: { statement: 'restored' },
    });
    const standing = (await full.kronos('plans --json')).out;
    expect((await empty.kronos('plans --json')).out).toBe(standing);
  });

  it('refuses a log that goes on, or another one', async () => {
    await full.kronos('pause --all');
    await golden(full, 'archive restore /archive', 'archive-restore-refused');
  });
});
