import { type CycleDecided, canonicalJson, type Decision, decisionSchema } from '@kronos/contracts';
import { decisionOf, digest, releaseOf, runCycle, withoutDetails } from '@kronos/cycle';
import { BadObject, MissingObject } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import type { AggregateState } from '@kronos/projections';
import { type Difference, differences } from './diff.ts';
import { RecordingInvalid } from './errors.ts';
import { type LoadedSnapshot, openSnapshot, type StoredBody } from './history.ts';

/** What running a recorded decision again gave. */
export type Verdict =
  | { readonly verdict: 'identical' }
  /** Another decision, or one with other inputs than it names, by the same planner version. */
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

/** A recorded decision to be run again. It can be sent to another thread. */
export type VerifyOrder = {
  readonly kind: 'verify';
  readonly sequence: number;
  readonly event: CycleDecided;
  /** Time of its snapshot, see `snapshotTimeMs`. */
  readonly snapshotMs: number;
  readonly anonymized: boolean;
  /** Of the log at the decision's basis: what is not the same object as in the last order about this aggregate. */
  readonly state: Partial<AggregateState>;
  /** What it was made of, or why that is not there. `details`: the decision in full, where its event has only a part. */
  readonly stored: { readonly body: StoredBody; readonly details: Uint8Array | null } | { readonly missing: string };
};

/** Runs a decision again with the log folded to its basis, and compares the bytes. */
export function verifyOne(order: VerifyOrder, state: AggregateState): VerifiedCycle {
  const { sequence, event, snapshotMs, stored } = order;
  const { data, aggregate } = event;
  const about = {
    aggregate,
    snapshotId: data.snapshotId,
    snapshotTimeMs: snapshotMs,
    sequence,
    plannerVersion: data.plannerVersion,
    outcome: data.outcome,
    reason: data.reason.text,
    steps: data.plan?.steps.length ?? 0,
  };
  const not = (reason: string): VerifiedCycle => ({ ...about, verdict: 'notReplayed', reason });
  if ('missing' in stored) return not(stored.missing);
  try {
    const recorded = recordedDecision(data, stored.details);
    return { ...about, ...compare(order, recorded, openSnapshot(stored.body), state) };
  } catch (error) {
    if (isUnusable(error)) return not(error.message);
    throw error;
  }
}

/** What a decision was made of is not there, or not what it was. */
export const isUnusable = (error: unknown): error is Error =>
  error instanceof MissingObject || error instanceof BadObject || error instanceof RecordingInvalid;

/** The decision in full: from its event, or from its details when its event would have grown too large. */
export function recordedDecision(data: CycleDecided['data'], details: Uint8Array | null): Decision {
  if (details === null) return decisionOf(data);
  return decisionSchema.parse(JSON.parse(new TextDecoder().decode(details)));
}

function compare(
  { anonymized, event: { data } }: VerifyOrder,
  recorded: Decision,
  { snapshot, digest: stored }: LoadedSnapshot,
  state: AggregateState,
): Verdict {
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
  if (!anonymized) {
    const now = { ...digests, snapshot: stored };
    for (const part of ['snapshot', 'policies', 'state', 'options'] as const)
      if (now[part] !== data.digests[part]) causes.push(`its ${part} is not the one that it was made of`);
    if (digest(recorded) !== data.digests.decision)
      causes.push('the recorded decision is not the one it has the digest of');
    const held = data.details === null ? recorded : withoutDetails(recorded);
    if (canonicalJson(held) !== canonicalJson(decisionOf(data))) causes.push('its event and its details disagree');
  }
  // Texts hold names inside sentences, which an anonymized recording tells otherwise.
  const a = anonymized ? withoutTexts(recorded) : recorded;
  const b = anonymized ? withoutTexts(decision) : decision;
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
