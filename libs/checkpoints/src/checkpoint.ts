import {
  type Actor,
  bodyLimits,
  bucketNames,
  canonicalJson,
  type Family,
  iso,
  messageId,
  parseJson,
  type StateCheckpointed,
  streamNames,
} from '@kronos/contracts';
import { BadObject, digestOf, type EventLog, isUnusableObject } from '@kronos/eventlog';
import {
  anchorOf,
  type CheckpointPart,
  fromParts,
  installationAt,
  type Json,
  type LogIdentity,
  type LogState,
  toParts,
} from '@kronos/projections';
import { readIdentity } from './identity.ts';

/** States above this go to the object store; the message names them. */
const MAX_INLINE_BYTES = 256 * 1024;
const LEDGER: Family = 'ledger';

/** A checkpoint that was not used, and why. `otherVersion`: another version of Kronos wrote it, as before an upgrade; nothing is wrong. */
export type SkippedCheckpoint = { readonly sequence: number; readonly problem: string; readonly otherVersion: boolean };

/**
 * The state of the newest checkpoint that can be trusted, or null: then the fold starts from the first event. Trusted is
 * one whose parts are all there, have the digests they name, are of this fold and of this log.
 *
 * @param upTo later ones are not looked at
 */
export async function newestCheckpoint(
  log: Pick<EventLog, 'tail' | 'objects' | 'replay' | 'lastSequence'>,
  onSkipped: (skipped: SkippedCheckpoint) => void,
  upTo = Number.POSITIVE_INFINITY,
): Promise<LogState | null> {
  if ((await log.lastSequence(streamNames.checkpoints)) === 0) return null;
  // A lost log had events of the same sequences, and its checkpoints outlive it.
  const found = new Map<string, { readonly sequence: number; readonly messages: StateCheckpointed[] }>();
  for await (const delivered of log.tail({ families: [LEDGER], since: 'all', end: true })) {
    if (delivered.problem !== undefined) {
      const problem = `${delivered.subject}: ${delivered.problem}`;
      onSkipped({ sequence: delivered.sequence, problem, otherVersion: false });
      continue;
    }
    if (delivered.message.type !== 'state.checkpointed') continue;
    const { sequence, installationId = null } = delivered.message.data;
    if (sequence > upTo) continue;
    const key = `${sequence} of ${installationId}`;
    const checkpoint = found.get(key) ?? { sequence, messages: [] };
    checkpoint.messages.push(delivered.message);
    found.set(key, checkpoint);
  }
  const identity = await readIdentity(log);
  for (const { sequence, messages } of [...found.values()].sort((a, b) => b.sequence - a.sequence)) {
    const problem = ofAnotherLog(identity, sequence, messages);
    const tried = problem === null ? await restore(log, messages) : { problem, otherVersion: false };
    if (!('problem' in tried)) return tried;
    onSkipped({ sequence, ...tried });
  }
  return null;
}

/** Why a checkpoint cannot be of this log; null where it may be. */
function ofAnotherLog(identity: LogIdentity, sequence: number, messages: readonly StateCheckpointed[]): string | null {
  if (sequence > identity.lastSequence) return `the log ends at ${identity.lastSequence}`;
  const own = installationAt(identity, sequence);
  const other = messages.find(({ data }) => data.installationId !== undefined && data.installationId !== own);
  if (other === undefined) return null;
  return `${other.aggregate}: it is of installation ${other.data.installationId ?? '(none)'}, and the log there of ${own ?? '(none)'}`;
}

/** The state that these messages hold, or what is wrong with them. */
async function restore(
  log: Pick<EventLog, 'objects' | 'replay'>,
  messages: readonly StateCheckpointed[],
): Promise<LogState | Omit<SkippedCheckpoint, 'sequence'>> {
  const wrong = (problem: string) => ({ problem, otherVersion: false });
  const parts = new Map<string, CheckpointPart>();
  for (const { aggregate, data } of messages) {
    let state: Json;
    try {
      state = data.body === null ? (data.state as Json) : await stateOf(log, data.body);
    } catch (error) {
      if (isUnusableObject(error)) return wrong(`${aggregate}: ${error.message}`);
      throw error;
    }
    if (digestOf(canonicalJson(state)) !== data.digest)
      return wrong(`${aggregate}: the state has not the digest that it names`);
    parts.set(aggregate, { aggregate, sequence: data.sequence, foldVersion: data.foldVersion, state });
  }
  const restored = fromParts([...parts.values()]);
  if (!restored.ok) return { problem: restored.problem, otherVersion: restored.otherVersion };
  const { sequence } = restored.state;
  for await (const stored of log.replay({ from: sequence, to: sequence }))
    if (anchorOf(stored) === restored.anchor) return restored.state;
  return wrong(`it is of another log: there event ${sequence} was ${restored.anchor}`);
}

async function stateOf(log: Pick<EventLog, 'objects'>, ref: Parameters<EventLog['objects']['get']>[0]): Promise<Json> {
  const json = parseJson(await log.objects.get(ref), bodyLimits);
  if (!json.ok) throw new BadObject(`${ref.object} in ${ref.bucket}: ${json.problem}`);
  return json.value as Json;
}

type Writing = {
  readonly anchor: string;
  readonly by: Actor;
  readonly nowMs: number;
  /** Null: the log names no installation. */
  readonly installationId?: string | null;
};

/** Writes the state, one message per aggregate. Written again, or by another ledger, it is the same messages. */
export async function writeCheckpoint(
  log: Pick<EventLog, 'append' | 'objects'>,
  state: LogState,
  { anchor, by, nowMs, installationId = null }: Writing,
): Promise<void> {
  for (const part of toParts(state, anchor)) {
    const { aggregate, sequence, foldVersion } = part;
    const text = canonicalJson(part.state);
    const bytes = new TextEncoder().encode(text);
    const large = bytes.byteLength > MAX_INLINE_BYTES;
    const body = large ? await log.objects.put(bucketNames.checkpoints, `${aggregate} at ${sequence}`, bytes) : null;
    const id = messageId.checkpoint(aggregate, sequence, installationId);
    await log.append({
      type: 'state.checkpointed',
      version: 1,
      id,
      time: iso(nowMs),
      aggregate,
      by,
      correlationId: id,
      causationId: null,
      data: { sequence, foldVersion, digest: digestOf(bytes), state: large ? null : part.state, body, installationId },
    });
  }
}
