import { createHash } from 'node:crypto';
import { appendFile, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventLine } from './format.ts';
import { type ArchivedEvent, openArchive, readArchive, verifyArchive } from './index.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kronos-archive-'));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const event = (sequence: number, body = `{"n":${sequence},"text":"Größe"}`): ArchivedEvent => ({
  sequence,
  storedAt: 1_767_571_200_000 + sequence,
  subject: 'kronos.results.gpu',
  headers: { 'Nats-Msg-Id': `id-${sequence}`, traceparent: '00-1-2-01' },
  data: new TextEncoder().encode(body),
});
const events = (from: number, to: number): ArchivedEvent[] =>
  Array.from({ length: to - from + 1 }, (_, i) => event(from + i));

async function write(from: number, to: number, maxFileBytes = 1000): Promise<void> {
  const archive = await openArchive(dir, { maxFileBytes });
  for (const one of events(from, to)) await archive.write([one]);
  await archive.close();
}
async function readAll(): Promise<ArchivedEvent[]> {
  const all: ArchivedEvent[] = [];
  for await (const one of readArchive(dir)) all.push(one);
  return all;
}
const names = async () => (await readdir(dir)).sort();
/** Changes the content of a closed file. */
async function tamper(name: string, change: (text: string) => string): Promise<void> {
  const path = join(dir, name);
  await writeFile(path, gzipSync(change(gunzipSync(await readFile(path)).toString())));
}

describe('an archive', () => {
  it('gives back every event as it was', async () => {
    await write(1, 30);
    expect(await readAll()).toEqual(events(1, 30));
    expect(await verifyArchive(dir)).toMatchObject({
      events: 30,
      first: 1,
      last: 30,
      lastStoredAtMs: event(30).storedAt,
    });
  });

  it('closes and compresses a file that has reached its size', async () => {
    await write(1, 30);
    const files = await names();
    expect(files.length).toBeGreaterThan(3);
    expect(files.slice(0, -1).every((name) => name.endsWith('.jsonl.gz'))).toBe(true);
    expect(files.at(-1)).toMatch(/\.jsonl$/);
  });

  it('is readable by people', async () => {
    await write(1, 1);
    const text = await readFile(join(dir, 'events-0000000000000001.jsonl'), 'utf8');
    expect(text.split('\n')[0]).toBe(
      '{"kronosArchive":2,"stream":"KRONOS_LOG","installation":null,"first":1,"previous":null}',
    );
    expect(text).toContain('"subject":"kronos.results.gpu"');
    expect(text).toContain('Größe');
  });

  it('keeps bodies that are no text', async () => {
    const archive = await openArchive(dir, { maxFileBytes: 1000 });
    const data = new Uint8Array([0xff, 0xfe, 0, 10, 13]);
    await archive.write([{ ...event(1), data }]);
    await archive.close();
    expect((await readAll())[0]?.data).toEqual(data);
  });

  it('goes on where it ended, in the open file or in a new one', async () => {
    for (let from = 1; from <= 30; from += 3) await write(from, from + 2);
    expect(await readAll()).toEqual(events(1, 30));
    const archive = await openArchive(dir, { maxFileBytes: 1000 });
    expect([archive.next, archive.last]).toEqual([31, event(30)]);
    await archive.close();
  });

  it('refuses events that do not follow', async () => {
    const archive = await openArchive(dir, { maxFileBytes: 1000 });
    await archive.write(events(1, 2));
    await expect(archive.write([event(4)])).rejects.toMatchObject({ code: 'KRONOS_ARCHIVE_GAP' });
    await expect(archive.write([event(2)])).rejects.toMatchObject({ code: 'KRONOS_ARCHIVE_GAP' });
    await archive.write([event(3)]);
    await archive.close();
    expect(await readAll()).toEqual(events(1, 3));
  });

  it('is empty before the first event', async () => {
    expect(await verifyArchive(dir)).toEqual({
      files: 0,
      events: 0,
      first: null,
      last: null,
      lastStoredAtMs: null,
      installation: null,
      torn: 0,
    });
  });

  it('names the installation that the log names, in every file from there on', async () => {
    const created = (sequence: number, installationId: string): ArchivedEvent => ({
      ...event(sequence, JSON.stringify({ type: 'installation.created', data: { installationId } })),
      subject: 'kronos.controls._all_',
    });
    for (const batch of [[created(1, 'one')], events(2, 12), [created(13, 'two')], events(14, 24)]) {
      const archive = await openArchive(dir, { maxFileBytes: 600 });
      for (const one of batch) await archive.write([one]);
      await archive.close();
    }
    const heads = await Promise.all(
      (await names()).map(async (name) => {
        const bytes = await readFile(join(dir, name));
        return JSON.parse((name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n')[0] ?? '');
      }),
    );
    expect(new Set(heads.filter((head) => head.first <= 13).map((head) => head.installation))).toEqual(
      new Set(['one']),
    );
    expect(new Set(heads.filter((head) => head.first > 13).map((head) => head.installation))).toEqual(new Set(['two']));
    expect(await verifyArchive(dir)).toMatchObject({ last: 24, installation: 'two' });
    const archive = await openArchive(dir, { maxFileBytes: 600 });
    expect(archive.installation).toBe('two');
    await archive.close();
  });

  it('of the earlier form is read, and goes on in files of this one', async () => {
    const line = (one: ArchivedEvent) => eventLine(one);
    const head = (first: number, previous: string | null) =>
      `${JSON.stringify({ kronosArchive: 1, stream: 'KRONOS_LOG', first, previous })}\n`;
    const first = head(1, null) + events(1, 3).map(line).join('');
    const digest = `sha256:${createHash('sha256').update(first).digest('hex')}`;
    await writeFile(join(dir, 'events-0000000000000001.jsonl.gz'), gzipSync(first));
    await writeFile(
      join(dir, 'events-0000000000000004.jsonl'),
      `${head(4, digest)}${events(4, 5).map(line).join('')}{"sequence":6`,
    );
    expect(await verifyArchive(dir)).toMatchObject({ last: 5, torn: 13 });
    await write(6, 9);
    expect(await readAll()).toEqual(events(1, 9));
    expect(await names()).toEqual([
      'events-0000000000000001.jsonl.gz',
      'events-0000000000000004.jsonl.gz',
      'events-0000000000000006.jsonl',
    ]);
  });

  it('notices a second writer', async () => {
    const archive = await openArchive(dir, { maxFileBytes: 1000 });
    await archive.write([event(1)]);
    await write(2, 2);
    await expect(archive.write([event(2)])).rejects.toMatchObject({ code: 'KRONOS_ARCHIVE_TAKEN' });
    await archive.close();
    expect(await readAll()).toEqual(events(1, 2));
  });
});

describe('after a crash', () => {
  it('at any byte of the open file the archive goes on after the last batch that was written whole', async () => {
    await write(1, 4, 400);
    const [open] = (await names()).filter((name) => name.endsWith('.jsonl'));
    const path = join(dir, open ?? '');
    const whole = await readFile(path);
    for (let length = 0; length <= whole.length; length++) {
      await writeFile(path, whole);
      await truncate(path, length);
      const archive = await openArchive(dir, { maxFileBytes: 400 });
      const { next } = archive;
      await archive.write(events(next, 5));
      await archive.close();
      expect((await verifyArchive(dir)).last, `cut at ${length}`).toBe(5);
      for (const name of await names()) if (name.endsWith('.jsonl')) await rm(join(dir, name));
    }
  });

  it('between compressing a file and removing it there is one of it', async () => {
    await write(1, 12);
    const [closed] = await names();
    const text = gunzipSync(await readFile(join(dir, closed ?? '')));
    await writeFile(join(dir, (closed ?? '').replace('.gz', '')), text);
    expect((await verifyArchive(dir)).last).toBe(12);
    await write(13, 14);
    expect(await readAll()).toEqual(events(1, 14));
    expect((await names()).filter((name) => !name.endsWith('.gz'))).toHaveLength(1);
  });

  it('between beginning a file and compressing the full one both are read, and the full one is compressed', async () => {
    await write(1, 12);
    const [closed = ''] = await names();
    const text = gunzipSync(await readFile(join(dir, closed)));
    await writeFile(join(dir, closed.replace('.gz', '')), text);
    await rm(join(dir, closed));
    expect((await verifyArchive(dir)).last).toBe(12);
    await write(13, 14);
    expect(await readAll()).toEqual(events(1, 14));
    expect((await names()).filter((name) => !name.endsWith('.gz'))).toHaveLength(1);
  });

  it('knows its last event also when a file was begun and nothing written into it', async () => {
    await write(1, 12);
    const open = (await names()).at(-1) ?? '';
    const [head] = (await readFile(join(dir, open), 'utf8')).split('\n');
    await writeFile(join(dir, open), `${head}\n`);
    const archive = await openArchive(dir, { maxFileBytes: 1000 });
    expect(archive.last).toEqual(event(archive.next - 1));
    expect(archive.next).toBeGreaterThan(1);
    await archive.close();
  });

  it('in the middle of compressing the file is compressed again', async () => {
    await write(1, 4, 400);
    await writeFile(join(dir, 'events-0000000000000003.jsonl.gz.part'), 'half');
    await write(5, 12, 400);
    expect(await readAll()).toEqual(events(1, 12));
  });
});

describe('a change of the archive is found:', () => {
  const broken = async (what: RegExp) => {
    await expect(verifyArchive(dir)).rejects.toMatchObject({
      code: 'KRONOS_ARCHIVE_BROKEN',
      message: expect.stringMatching(what),
    });
  };

  it('an event with another body', async () => {
    await write(1, 30);
    const [first] = await names();
    await tamper(first ?? '', (text) => text.replace('\\"n\\":2', '\\"n\\":3'));
    await broken(/events-0000000000000001.jsonl.gz: something above line \d+ was changed .*events 2 to 2/);
  });

  it('each file that is missing, the oldest and the newest too, by name', async () => {
    await write(1, 30);
    const all = await names();
    for (const [i, name] of all.entries()) {
      const bytes = await readFile(join(dir, name));
      await rm(join(dir, name));
      if (i === 0)
        await broken(new RegExp(`${all[1]}: it begins with event \\d+: the files before it, .* are missing`));
      else if (i === all.length - 1) await broken(new RegExp(`${all[i - 1]}: the file after it, .* is missing`));
      else await broken(new RegExp(`${all[i + 1]}: a file is missing before it`));
      await writeFile(join(dir, name), bytes);
    }
    expect((await verifyArchive(dir)).last).toBe(30);
  });

  it('each two files that were swapped, by name', async () => {
    await write(1, 30);
    const closed = (await names()).filter((name) => name.endsWith('.gz'));
    for (const [i, name] of closed.entries()) {
      const other = closed[i + 1];
      if (other === undefined) break;
      const [a, b] = [await readFile(join(dir, name)), await readFile(join(dir, other))];
      await writeFile(join(dir, name), b);
      await writeFile(join(dir, other), a);
      await broken(new RegExp(`${name}: begins with event \\d+ by its head`));
      await writeFile(join(dir, name), a);
      await writeFile(join(dir, other), b);
    }
  });

  it('a file of another archive that is whole in itself', async () => {
    await write(1, 30);
    const [, name = ''] = await names();
    const own = dir;
    dir = await mkdtemp(join(tmpdir(), 'kronos-archive-'));
    const archive = await openArchive(dir, { maxFileBytes: 1000 });
    const edited = events(1, 30).map((one) => {
      const text = new TextDecoder().decode(one.data);
      return { ...one, data: new TextEncoder().encode(one.sequence < 4 ? text : text.replace('Größe', 'Gräße')) };
    });
    for (const one of edited) await archive.write([one]);
    await archive.close();
    const other = await readFile(join(dir, name));
    await rm(dir, { recursive: true });
    dir = own;
    await writeFile(join(dir, name), other);
    await broken(/: the file before it has the digest sha256:\w+, and it names sha256:\w+: one of the two was changed/);
  });

  it('the beginning of another archive', async () => {
    await write(1, 30);
    const [first = '', second = ''] = await names();
    await rm(join(dir, first));
    await tamper(second, (text) => text.replace(/"previous":"sha256:\w+"/, '"previous":null'));
    await broken(/the files before it/);
  });

  it('each line of the open file that is dropped, swapped or edited, with its place', async () => {
    const archive = await openArchive(dir, { maxFileBytes: 1e6 });
    for (let from = 1; from <= 9; from += 3) await archive.write(events(from, from + 2));
    await archive.close();
    const path = join(dir, 'events-0000000000000001.jsonl');
    const whole = await readFile(path, 'utf8');
    const lines = whole.trimEnd().split('\n');
    const attempt = async (changed: string[], what: string) => {
      await writeFile(path, `${changed.join('\n')}\n`);
      const report = await verifyArchive(dir).catch((error: Error) => error);
      if (report instanceof Error) {
        expect(report.message, what).toMatch(/events-0000000000000001\.jsonl: .*(line \d+|head|archive)/);
        return;
      }
      // A cut at the end is not hidden: it says how far it reaches, and what follows the last seal.
      expect(report.last, what).toBeLessThan(9);
      expect(what).toMatch(/drop 13|swap 12/);
      expect(report.torn, what).toBeGreaterThan(0);
    };
    expect(lines).toHaveLength(13);
    for (const [i, line] of lines.entries()) {
      await attempt(lines.toSpliced(i, 1), `drop ${i + 1}`);
      if (i > 0) await attempt(lines.with(i - 1, line).with(i, lines[i - 1] ?? ''), `swap ${i}`);
      await attempt(
        lines.with(
          i,
          line.replace(/\d(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10)),
        ),
        `edit ${i + 1}`,
      );
    }
  });

  it('an event that is missing', async () => {
    await write(1, 30);
    await tamper((await names())[0] ?? '', (text) =>
      text
        .split('\n')
        .filter((_, i) => i !== 3)
        .join('\n'),
    );
    await broken(/line 4 seals event 2, and event 1 is above it/);
  });

  it('a line that is none', async () => {
    await write(1, 3, 1e6);
    await appendFile(join(dir, 'events-0000000000000001.jsonl'), 'noise\n');
    await broken(/line 8 is no JSON object/);
  });

  it('a closed file that is cut', async () => {
    await write(1, 30);
    const path = join(dir, (await names())[0] ?? '');
    const whole = await readFile(path);
    await truncate(path, whole.length - 20);
    await broken(/cannot be read|middle of a line/);
  });

  it('a head of something else', async () => {
    await writeFile(join(dir, 'events-0000000000000001.jsonl'), '{"kronosArchive":3}\n');
    await broken(/no archive that this version/);
  });
});

describe('safety', () => {
  it('whatever is written in whatever pieces is read back, and any single changed byte of a closed file is found', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.string(), { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 200, max: 2000 }),
        fc.nat(),
        async (pieces, maxFileBytes, place) => {
          for (const name of await names()) await rm(join(dir, name));
          const written: ArchivedEvent[] = [];
          for (const piece of pieces) {
            const archive = await openArchive(dir, { maxFileBytes });
            const batch = piece.map((text, i) => event(written.length + i + 1, text));
            await archive.write(batch);
            written.push(...batch);
            await archive.close();
          }
          expect(await readAll()).toEqual(written);
          const [closed] = (await names()).filter((name) => name.endsWith('.gz'));
          if (closed === undefined) return;
          const bytes = gunzipSync(await readFile(join(dir, closed)));
          const at = place % bytes.length;
          bytes[at] = (bytes[at] ?? 0) ^ 1;
          await writeFile(join(dir, closed), gzipSync(bytes));
          await expect(verifyArchive(dir)).rejects.toMatchObject({ code: 'KRONOS_ARCHIVE_BROKEN' });
        },
      ),
      { numRuns: 40 },
    );
  });
});
