import { type CycleDecided, canonicalJson, type Decision, decisionSchema, type Snapshot } from '@kronos/contracts';
import { decisionOf, digest, releaseOf, runCycle, withoutDetails } from '@kronos/cycle';
import { BadObject, MissingObject } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { type AggregateState, aggregateState, createFolder } from '@kronos/projections';
import { type Difference, differences } from './diff.ts';
import { RecordingInvalid } from './errors.ts';
import type { History, Range, SnapshotEntry, StoredDecision } from './history.ts';

/** What running a recorded decision again gave. */
export type Verdict =
  | { readonly verdict: 'identical' }
  /** Another decision, or made of other things than it says, by the same planner version. */
  | { readonly verdict: 'different'; readonly causes: readonly string[]; readonly differences: readonly Difference[] }
  /** Another decision; another version of the planner made the recorded one. */
  | {
      readonly verdict: 'otherVersion';
      readonly causes: readonly string[];
      readonly differences: readonly Difference[];
    }
  /** It could not be run again. */
  | { readonly verdict: 'notReplayed'; readonly reason: string };

/** One recorded decision and its verdict. */
export type VerifiedCycle = Verdict & {
  readonly aggregate: string;
  readonly snapshotId: string;
  readonly snapshotTimeMs: number;
  /** Of its `cycle.decided` on the log. */
  readonly sequence: number;
  readonly plannerVersion: string;
  readonly outcome: Decision['outcome'];
  readonly reason: string;
  readonly steps: number;
};

export type Progress = (done: number, total: number) => void;

/** What a decision is made of and cannot be had twice: the state of the log at its basis. */
type Due = { readonly basis: number; readonly aggregate: string };

/**
 * Runs every recorded decision of the range again, each with the log folded up to its own basis, and compares the bytes.
 * The log is read from its first event; decisions come in the order of the log.
 */
export async function* verify(
  history: History,
  range: Range,
  onProgress: Progress = () => {},
): AsyncGenerator<VerifiedCycle, void, undefined> {
  const due = new Map<number, Due>();
  for await (const { sequence, event } of history.decisions(range))
    due.set(sequence, { basis: event.data.basis, aggregate: event.aggregate });
  if (due.size === 0) return;
  const snapshots = new Map<string, SnapshotEntry>();
  for await (const entry of history.snapshots(range)) snapshots.set(entry.id, entry);

  const byBasis = [...due].sort(([, a], [, b]) => a.basis - b.basis);
  const states = new Map<number, AggregateState>();
  const folder = createFolder();
  let next = 0;
  /** Keeps the states of all decisions whose basis comes before this sequence. */
  const keepBefore = (sequence: number): void => {
    for (; next < byBasis.length; next++) {
      const [decision, { basis, aggregate }] = byBasis[next] ?? [0, { basis: Number.POSITIVE_INFINITY, aggregate: '' }];
      if (basis >= sequence) return;
      states.set(decision, aggregateState(folder.snapshot(), aggregate));
    }
  };
  let done = 0;
  onProgress(0, due.size);
  const last = Math.max(...due.keys());
  for await (const stored of history.events(last)) {
    keepBefore(stored.sequence);
    const state = states.get(stored.sequence);
    if (state !== undefined && stored.event.type === 'cycle.decided') {
      states.delete(stored.sequence);
      yield await verifyOne(history, { sequence: stored.sequence, event: stored.event }, state, snapshots);
      done += 1;
      onProgress(done, due.size);
    }
    folder.apply(stored);
    if (done === due.size) return;
  }
}

async function verifyOne(
  history: History,
  { sequence, event }: StoredDecision,
  state: AggregateState,
  snapshots: ReadonlyMap<string, SnapshotEntry>,
): Promise<VerifiedCycle> {
  const { data, aggregate } = event;
  const about = {
    aggregate,
    snapshotId: data.snapshotId,
    snapshotTimeMs: Date.parse(data.snapshotTime),
    sequence,
    plannerVersion: data.plannerVersion,
    outcome: data.outcome,
    reason: data.reason.text,
    steps: data.plan?.steps.length ?? 0,
  };
  const not = (reason: string): VerifiedCycle => ({ ...about, verdict: 'notReplayed', reason });
  const entry = snapshots.get(data.snapshotId);
  if (entry === undefined) return not(`the snapshot ${data.snapshotId} is not kept (any more)`);
  if (state.configured === null) return not('the log names no options before this decision');
  try {
    const { snapshot, digest: stored } = await entry.load();
    const recorded = await recordedDecision(history, data);
    return { ...about, ...compare(history, data, recorded, { snapshot, stored, state }) };
  } catch (error) {
    if (error instanceof MissingObject || error instanceof BadObject || error instanceof RecordingInvalid)
      return not(error.message);
    throw error;
  }
}

/** The decision in full: from its event, or from the bucket when its event would have grown too large. */
export async function recordedDecision(history: History, data: CycleDecided['data']): Promise<Decision> {
  if (data.details === null) return decisionOf(data);
  const text = new TextDecoder().decode(await history.details(data.details));
  return decisionSchema.parse(JSON.parse(text));
}

function compare(
  history: History,
  data: CycleDecided['data'],
  recorded: Decision,
  made: { readonly snapshot: Snapshot; readonly stored: string; readonly state: AggregateState },
): Verdict {
  const { snapshot, stored, state } = made;
  const options = state.configured?.options;
  if (options === undefined) return { verdict: 'notReplayed', reason: 'the log names no options before this decision' };
  const { decision, digests, absence } = runCycle({ snapshot, state, options });
  const causes: string[] = [];
  if (data.release !== releaseOf(recorded, options))
    causes.push(
      `its plan is ${data.release}, and by the options on the log it would be ${releaseOf(recorded, options)}`,
    );
  if (canonicalJson(data.absence ?? null) !== canonicalJson(absence ?? null))
    causes.push('it names other absent servers');
  if (!history.anonymized) {
    const now = { ...digests, snapshot: stored };
    for (const part of ['snapshot', 'policies', 'state', 'options'] as const)
      if (now[part] !== data.digests[part]) causes.push(`its ${part} is not the one that it was made of`);
    if (digest(recorded) !== data.digests.decision)
      causes.push('the recorded decision is not the one it has the digest of');
    const held = data.details === null ? recorded : withoutDetails(recorded);
    if (canonicalJson(held) !== canonicalJson(decisionOf(data))) causes.push('its event and its details disagree');
  }
  // Texts hold names inside sentences, which an anonymized recording tells otherwise.
  const a = history.anonymized ? withoutTexts(recorded) : recorded;
  const b = history.anonymized ? withoutTexts(decision) : decision;
  if (causes.length === 0 && canonicalJson(a) === canonicalJson(b)) return { verdict: 'identical' };
  const verdict = data.plannerVersion === plannerVersion ? 'different' : 'otherVersion';
  return { verdict, causes, differences: differences(a, b) };
}

/** A JSON value without the sentences and details of its reasons. */
function withoutTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTexts);
  if (typeof value !== 'object' || value === null) return value;
  const isReason = 'code' in value && 'text' in value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !isReason || key === 'code')
      .map(([key, inner]) => [key, withoutTexts(inner)]),
  );
}

export type VerifyTotals = Readonly<Record<Verdict['verdict'], number>> & {
  readonly decisions: number;
  /** Share of the decisions that were run again and are identical; 1 when there is none. */
  readonly identicalShare: number;
  /** False when a decision differs or could not be run again; strict: also when another version decided otherwise. */
  readonly ok: boolean;
};

export function verifyTotals(cycles: Iterable<Verdict>, { strict = false } = {}): VerifyTotals {
  const totals = { identical: 0, different: 0, otherVersion: 0, notReplayed: 0 };
  let decisions = 0;
  for (const { verdict } of cycles) {
    totals[verdict] += 1;
    decisions += 1;
  }
  const run = decisions - totals.notReplayed;
  const ok = strict ? totals.identical === decisions : totals.different + totals.notReplayed === 0;
  return { ...totals, decisions, identicalShare: run === 0 ? 1 : totals.identical / run, ok };
}
