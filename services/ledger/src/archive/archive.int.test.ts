import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readArchive, verifyArchive } from '@kronos/archive';
import { openGuard, stateInstallation } from '@kronos/checkpoints';
import { systemClock } from '@kronos/clock';
import { ALL } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { canonicalState, createFolder } from '@kronos/projections';
import { randomHistory, testLog } from '@kronos/projections/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ledgerBed } from '../../testing/index.ts';

let dir: string;
let bed: Awaited<ReturnType<typeof ledgerBed>>;
const beds = new Set<typeof bed>();
async function openBed() {
  const opened = await ledgerBed();
  beds.add(opened);
  return opened;
}
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kronos-ledger-'));
  bed = await openBed();
});
afterEach(async () => {
  for (const one of beds) await one.close();
  beds.clear();
  await rm(dir, { recursive: true });
});

const archive = () => ({ dir, maxFileBytes: 50_000 });
const lastArchived = async () => (await verifyArchive(dir)).last;
/** Has a ledger copy the whole log, and stops it. */
async function archiveAll(): Promise<void> {
  const ledger = await bed.start({ archive: archive() });
  await expect.poll(lastArchived).toBe(await bed.log.lastSequence('KRONOS_LOG'));
  await ledger.stop();
}

async function folded(log: EventLog): Promise<string> {
  const folder = createFolder();
  for await (const stored of log.replay()) folder.apply(stored);
  return canonicalState(folder.snapshot());
}

describe('the archive of the ledger', () => {
  it('follows the log, over restarts, and its last words are in it', async () => {
    await bed.append(randomHistory({ seed: 1, cycles: 60 }));
    const first = await bed.start({ archive: archive() });
    const before = await bed.log.lastSequence('KRONOS_LOG');
    await expect.poll(lastArchived).toBe(before);
    await expect.poll(() => first.text('/metrics')).toContain(`kronos_archive_sequence ${before}`);
    await first.stop();

    await bed.append(randomHistory({ seed: 2, cycles: 30, startMs: Date.now() }));
    const second = await bed.start({ archive: archive() });
    await expect.poll(lastArchived).toBe(await bed.log.lastSequence('KRONOS_LOG'));
    const log = testLog('gpu', Date.now());
    log.decided();
    await bed.append(log.events);
    await expect.poll(lastArchived).toBe(await bed.log.lastSequence('KRONOS_LOG'));
    expect(await second.body('/readyz')).toMatchObject({ checks: { archive: { ok: true } } });
  });

  it('restored onto an empty server is the same log and leads to the same state, and the archive goes on there', async () => {
    await bed.append(randomHistory({ seed: 3, cycles: 80, repeats: 0 }));
    await archiveAll();
    const other = await openBed();
    const last = await bed.log.lastSequence('KRONOS_LOG');
    expect(await other.log.restore(readArchive(dir))).toEqual({ restored: last, skipped: 0 });
    // A restored log waits for the first event of its own.
    const text = (await folded(other.log)).replace('"live":false', '"live":true');
    expect(text).toBe(await folded(bed.log));

    const ledger = await other.start({ archive: archive() });
    const log = testLog('gpu', Date.now());
    log.decided();
    await other.append(log.events);
    await expect.poll(lastArchived).toBe((last ?? 0) + 1);
    await expect.poll(() => ledger.body('/api/v1')).toMatchObject({ sequence: (last ?? 0) + 1 });
  });

  it('of a log that was wiped keeps the ledger waiting, and the others too; when it is stated it is set aside', async () => {
    await bed.append(randomHistory({ seed: 4, cycles: 10, repeats: 0 }));
    await archiveAll();
    const archived = await verifyArchive(dir);

    const other = await openBed();
    const by = { service: 'provisioner', instance: 'test', version: '0.0.0' } as const;
    await stateInstallation(other.log, 'provisioned', {
      expectedLastSequence: 0,
      by,
      comment: null,
      nowMs: Date.now(),
      installationId: randomUUID(),
    });
    let started = false;
    const starting = other.start({ archive: archive() }).then((ledger) => {
      started = true;
      return ledger;
    });
    const options = { log: other.log, clock: systemClock, snapshotsOf: [], needsLedger: false };
    await expect.poll(() => other.log.lastSequence('KRONOS_CHECKPOINTS')).toBe(1);
    const guard = await openGuard(options);
    expect(guard.problem).toMatch(`the ledger's archive has seen event ${archived.last}`);
    await other.append(randomHistory({ seed: 5, cycles: 20, repeats: 0 }));
    expect(started).toBe(false);
    expect(await verifyArchive(dir)).toEqual(archived);

    await stateInstallation(other.log, 'newLog', {
      expectedLastSequence: await other.log.lastSequenceOf('controls', ALL),
      by,
      comment: null,
      nowMs: Date.now(),
      installationId: randomUUID(),
    });
    await starting;
    await expect.poll(() => guard.problem).toBeNull();
    guard.close();
    const aside = (await readdir(dir)).filter((name) => name.startsWith('set-aside-'));
    expect(aside).toEqual([`set-aside-unnamed-${archived.last}`]);
    expect(await verifyArchive(join(dir, aside[0] ?? ''))).toEqual(archived);
    await expect.poll(lastArchived).toBe(await other.log.lastSequence('KRONOS_LOG'));
  });

  it('of another log is not written over, where nothing shows it but the archive itself', async () => {
    await bed.append(randomHistory({ seed: 4, cycles: 10, repeats: 0 }));
    await archiveAll();
    const archived = await verifyArchive(dir);
    const other = await openBed();
    await other.append(randomHistory({ seed: 5, cycles: 20, repeats: 0 }));
    await expect(other.start({ archive: archive() })).rejects.toMatchObject({ code: 'KRONOS_ARCHIVE_FOREIGN' });
    expect(await verifyArchive(dir)).toEqual(archived);
  });

  it('that cannot be written makes the ledger not ready, and is caught up later', async () => {
    const ledger = await bed.start({ archive: archive() });
    const obstacle = join(dir, 'events-0000000000000001.jsonl');
    await mkdir(obstacle);
    await bed.append(randomHistory({ seed: 6, cycles: 5, startMs: Date.now() }));
    await expect.poll(() => ledger.body('/readyz')).toMatchObject({ checks: { archive: { ok: false } } });
    await rmdir(obstacle);
    await expect.poll(lastArchived).toBe(await bed.log.lastSequence('KRONOS_LOG'));
    await expect.poll(() => ledger.body('/readyz')).toMatchObject({ checks: { archive: { ok: true } } });
  });
});
