/** Opens evidence as a recording, for everything that reads recordings. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { type PackedSnapshot, type SnapshotBody, unpackSnapshots } from '@kronos/browser-core';
import { snapshotFiles } from '@kronos/replay';
import { z } from 'zod';
import { EvidenceInvalid } from './errors.ts';
import type { Evidence, ReadEvidence } from './format.ts';
import { isSigned } from './sign.ts';

const filesSchema = z.record(z.string(), z.string());
const snapshotsSchema = z.array(
  z.object({ id: z.string(), aggregate: z.string(), patch: z.unknown(), balance: z.boolean().optional() }),
);

/** Its snapshots, whole. @throws EvidenceInvalid */
export function snapshotsIn(file: string, { parts }: Evidence): SnapshotBody[] {
  const found = snapshotsSchema.safeParse(parse(parts.snapshots));
  if (!found.success) throw new EvidenceInvalid(file, 'snapshots: cannot be read');
  return unpackSnapshots(found.data as readonly PackedSnapshot[]);
}

/** Writes the recording that a file carries into a new directory, and removes it when the work is done. @throws EvidenceInvalid */
export async function withRecordingOf<T>(
  file: string,
  { evidence, problems }: ReadEvidence,
  work: (directory: string, problems: readonly string[]) => Promise<T>,
): Promise<T> {
  if (evidence === null) throw new EvidenceInvalid(file, problems.join('; '));
  const all = [...problems];
  if (evidence.signature !== null && !isSigned(evidence.manifestText, evidence.signature))
    all.push('signature: is not of this manifest');
  const directory = await mkdtemp(join(tmpdir(), 'kronos-evidence-'));
  try {
    await unpack(file, evidence, directory);
    return await work(directory, all);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function unpack(file: string, evidence: Evidence, directory: string): Promise<void> {
  const files = filesSchema.safeParse(parse(evidence.parts.recording));
  if (!files.success) throw new EvidenceInvalid(file, 'recording: cannot be read');
  const put = async (name: string, text: string): Promise<void> => {
    const path = normalize(join(directory, name));
    if (!path.startsWith(`${directory}/`)) throw new EvidenceInvalid(file, `recording: ${name} leads elsewhere`);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  };
  for (const [name, text] of Object.entries(files.data)) await put(name, text);
  for (const { body } of snapshotsIn(file, evidence)) {
    const { name, text } = snapshotFiles(body);
    await put(name, text);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
