/** Makes evidence of a part of a history. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { coreScript, type PackedSnapshot, snapshotPacker } from '@kronos/browser-core';
import { type CycleDecided, canonicalJson, iso } from '@kronos/contracts';
import { decideInput, optionsOfDecision } from '@kronos/cycle';
import { decide, plannerVersion } from '@kronos/placement';
import { aggregateState, createFolder, optionsOf } from '@kronos/projections';
import {
  type History,
  NothingRecorded,
  openSnapshot,
  type Range,
  readRecording,
  recordRange,
  type SnapshotEntry,
} from '@kronos/replay';
import { EvidenceTooLarge } from './errors.ts';
import { htmlOf, type Manifest, sha256 } from './format.ts';
import { signed } from './sign.ts';
import { viewModules } from './view.ts';

/** Bytes of a file. */
const MOST_BYTES = 3_000_000;

export type MakeInput = {
  readonly history: History;
  readonly range: Range;
  /** Only these of its snapshots, by id. Default: all. */
  readonly only?: readonly string[];
  readonly anonymize: boolean;
  /** PEM of an Ed25519 key; null: it is not signed. */
  readonly keyFile: string | null;
  readonly madeBy: string;
  readonly nowMs: number;
  /** The file may take this many bytes. Default: 3 MB. */
  readonly mostBytes?: number;
};

export type MadeEvidence = {
  readonly html: string;
  readonly decisions: number;
  readonly snapshots: number;
};

/** @throws NothingRecorded, EvidenceTooLarge, EvidenceKey */
export async function makeEvidence(input: MakeInput): Promise<MadeEvidence> {
  const scratch = await mkdtemp(join(tmpdir(), 'kronos-evidence-'));
  try {
    const directory = join(scratch, 'recording');
    const { history, range, only, anonymize, madeBy, nowMs } = input;
    await recordRange(history, directory, { range, anonymize, madeBy, nowMs, ...(only === undefined ? {} : { only }) });
    return await packed(directory, { ...input, mostBytes: input.mostBytes ?? MOST_BYTES });
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** The text of each file of a recording but the snapshots. */
async function filesBesideSnapshots(directory: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const name = join(entry.parentPath, entry.name)
      .slice(directory.length + 1)
      .replaceAll('\\', '/');
    if (entry.isFile() && !name.startsWith('snapshots/')) files[name] = await readFile(join(directory, name), 'utf8');
  }
  return files;
}

async function packed(
  directory: string,
  { anonymize, keyFile, madeBy, nowMs, mostBytes }: Required<Omit<MakeInput, 'only'>>,
): Promise<MadeEvidence> {
  const recording = await readRecording(directory);
  const files = await filesBesideSnapshots(directory);
  const entries: SnapshotEntry[] = [];
  for await (const entry of recording.history.snapshots({})) entries.push(entry);
  const pack = snapshotPacker();
  const snapshots: PackedSnapshot[] = [];
  for (const { id, aggregate, read } of entries)
    snapshots.push(pack({ id, aggregate, body: openSnapshot(await read()).body }));
  const decisions = await decisionsOf(recording.history, entries);
  if (Object.keys(decisions).length === 0)
    throw new NothingRecorded('there is no decision in that range', 'Give another range, or another plan.');
  const parts = {
    recording: JSON.stringify(files),
    snapshots: JSON.stringify(snapshots),
    core: coreScript(),
    view: viewModules(),
  };
  const { about } = recording;
  const manifest: Manifest = {
    kronosEvidence: 1,
    madeBy,
    madeAt: iso(nowMs),
    plannerVersion,
    anonymized: anonymize,
    aggregates: about.aggregates,
    since: about.range?.since ?? iso(entries[0]?.timeMs ?? 0),
    until: about.range?.until ?? iso(entries.at(-1)?.timeMs ?? 0),
    parts: {
      recording: sha256(parts.recording),
      snapshots: sha256(parts.snapshots),
      core: sha256(parts.core),
      view: sha256(parts.view),
    },
    decisions,
  };
  const manifestText = JSON.stringify(manifest);
  const signature = keyFile === null ? null : signed(manifestText, keyFile);
  const html = htmlOf({ manifestText, signature, parts });
  checkSize({ bytes: html.length, most: mostBytes, snapshots: entries.length }, () => {
    const { core, view } = parts;
    return htmlOf({ manifestText, signature, parts: { core, view, recording: '', snapshots: '' } }).length;
  });
  return { html, decisions: Object.keys(decisions).length, snapshots: entries.length };
}

/** @param emptyBytes bytes without the parts that grow with the snapshots @throws EvidenceTooLarge */
function checkSize(size: Readonly<Record<'bytes' | 'most' | 'snapshots', number>>, emptyBytes: () => number): void {
  const { bytes, most, snapshots } = size;
  if (bytes <= most) return;
  const empty = emptyBytes();
  throw new EvidenceTooLarge({ ...size, fit: Math.floor((snapshots * (most - empty)) / (bytes - empty)) });
}

/** The digest of each decision, made again from the recording. Of one that is not anonymized it is the recorded one. */
async function decisionsOf(history: History, entries: readonly SnapshotEntry[]): Promise<Record<string, string>> {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const folder = createFolder();
  const waiting: CycleDecided[] = [];
  const found: Record<string, string> = {};
  const run = async (event: CycleDecided): Promise<void> => {
    const entry = byId.get(event.data.snapshotId);
    if (entry === undefined) return;
    const state = aggregateState(folder.snapshot(), event.aggregate);
    const { snapshot } = openSnapshot(await entry.read());
    found[entry.id] = sha256(
      canonicalJson(decide(decideInput(state, snapshot, optionsOfDecision(optionsOf(state), event.data)))),
    );
  };
  // A decision follows what it is based on, with other events between them.
  for await (const { event } of history.events()) if (event.type === 'cycle.decided') waiting.push(event);
  waiting.sort((a, b) => a.data.basis - b.data.basis);
  for await (const stored of history.events()) {
    while ((waiting[0]?.data.basis ?? Number.POSITIVE_INFINITY) < stored.sequence) {
      const next = waiting.shift();
      if (next !== undefined) await run(next);
    }
    folder.apply(stored);
  }
  for (const event of waiting) await run(event);
  return found;
}
