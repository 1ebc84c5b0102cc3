import {
  type CycleDecided,
  canonicalJson,
  type Decision,
  decisionSchema,
  isRequestRefusal,
  type PlanProposed,
  type ProposalDecision,
  proposalDecisionSchema,
  timeMs,
} from '@kronos/contracts';
import {
  decisionOf,
  digest,
  optionsOfDecision,
  planRequest,
  proposalRelease,
  releaseOf,
  runCycle,
  runProposal,
  withoutDetails,
  withoutRefused,
} from '@kronos/cycle';
import { isUnusableObject } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import type { AggregateState } from '@kronos/projections';
import { type Difference, differences } from './diff.ts';
import { RecordingInvalid } from './errors.ts';
import { type LoadedSnapshot, openSnapshot, type StoredBody } from './history.ts';
import type { LogChanges } from './logChanges.ts';

/** The result of running a recorded decision again. */
export type ReplayVerdict =
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
export type VerifiedCycle = ReplayVerdict & {
  readonly aggregate: string;
  readonly snapshotId: string;
  readonly snapshotTimeMs: number;
  /** Of its `cycle.decided` or `plan.proposed` on the log. */
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
  /** The log at the decision's basis: what changed since the last order to this thread. */
  readonly log: LogChanges;
  readonly stored: Stored | { readonly missing: string };
};

/** The input of a decision. `details`: the whole decision, where its event has only a part. */
type Stored = { readonly body: StoredBody; readonly details: Uint8Array | null };

/** A recorded decision about a request for a plan, to be run again on this thread. */
export type ProposalOrder = Omit<VerifyOrder, 'kind' | 'event' | 'log'> & { readonly event: PlanProposed };

/** Runs a decision again with the log folded to its basis, and compares the bytes. */
export function verifyOne(order: VerifyOrder, state: AggregateState): VerifiedCycle {
  const { data } = order.event;
  return judged(order, data.plan?.steps.length ?? 0, ({ body, details }) =>
    compare(order, recordedDecision(data, details), openSnapshot(body), state),
  );
}

/** Decides a request for a plan again with the log folded to its basis, and compares the bytes. */
export function verifyProposal(order: ProposalOrder, stateOf: (aggregate: string) => AggregateState): VerifiedCycle {
  const { data } = order.event;
  return judged(order, data.steps.length, ({ body, details }) =>
    compareProposal(order, recordedProposal(data, details), openSnapshot(body), stateOf),
  );
}

function judged(
  { sequence, event: { aggregate, data }, snapshotMs, stored }: VerifyOrder | ProposalOrder,
  steps: number,
  run: (stored: Stored) => ReplayVerdict,
): VerifiedCycle {
  const about = {
    aggregate,
    snapshotId: data.snapshotId,
    snapshotTimeMs: snapshotMs,
    sequence,
    plannerVersion: data.plannerVersion,
    outcome: data.outcome,
    reason: data.reason.text,
    steps,
  };
  const not = (reason: string): VerifiedCycle => ({ ...about, verdict: 'notReplayed', reason });
  if ('missing' in stored) return not(stored.missing);
  try {
    return { ...about, ...run(stored) };
  } catch (error) {
    if (isUnusable(error)) return not(error.message);
    throw error;
  }
}

/** Whether the input of a decision is missing or was changed. */
export const isUnusable = (error: unknown): error is Error =>
  isUnusableObject(error) || error instanceof RecordingInvalid;

/** The decision in full: from its event, or from its details when its event would have grown too large. */
export function recordedDecision(data: CycleDecided['data'], details: Uint8Array | null): Decision {
  if (details === null) return decisionOf(data);
  return decisionSchema.parse(JSON.parse(new TextDecoder().decode(details)));
}

/** Likewise of a request for a plan. */
export function recordedProposal(data: PlanProposed['data'], details: Uint8Array | null): ProposalDecision {
  return proposalDecisionSchema.parse(details === null ? data : JSON.parse(new TextDecoder().decode(details)));
}

const NO_OPTIONS: ReplayVerdict = { verdict: 'notReplayed', reason: 'the log names no options before this decision' };

function compare(
  { anonymized, event: { data, time } }: VerifyOrder,
  recorded: Decision,
  { snapshot, hasDigest }: LoadedSnapshot,
  state: AggregateState,
): ReplayVerdict {
  if (state.configured === null) return NO_OPTIONS;
  const options = optionsOfDecision(state.configured.options, data);
  const { decision, digests, absence, loads } = runCycle({ snapshot, state, options });
  const causes: string[] = [];
  const release = releaseOf(recorded, options, timeMs(time));
  if (data.release !== release) causes.push(otherRelease(data, release));
  if (canonicalJson(data.absence ?? null) !== canonicalJson(absence ?? null))
    causes.push('it names other absent servers');
  if (!anonymized) {
    causes.push(...otherInputs(data.digests, { ...digests, decision: digest(recorded) }, hasDigest));
    const held = data.details === null ? recorded : withoutDetails(recorded);
    if (canonicalJson(held) !== canonicalJson(decisionOf(data))) causes.push(DISAGREE);
    // Earlier versions state none.
    const { loads: stated } = data;
    if (causes.length === 0 && stated !== undefined && canonicalJson(stated) !== canonicalJson(loads ?? null))
      causes.push('it states other loads of hosts');
  }
  return compared(recorded, decision, causes, { version: data.plannerVersion, anonymized });
}

function compareProposal(
  { anonymized, event: { data, aggregate, time } }: ProposalOrder,
  recorded: ProposalDecision,
  { snapshot, hasDigest }: LoadedSnapshot,
  stateOf: (aggregate: string) => AggregateState,
): ReplayVerdict {
  const request = planRequest(snapshot);
  if (request === null) return { verdict: 'notReplayed', reason: 'its snapshot does not say what was asked for' };
  const options = stateOf(aggregate).configured?.options;
  if (options === undefined) return NO_OPTIONS;
  const { outcome, reason } = recorded;
  const refusal = outcome === 'gated' && isRequestRefusal(reason.code) ? reason : null;
  const { decision, digests } = runProposal({ request, stateOf, options, refusal });
  const causes: string[] = [];
  const release = proposalRelease(recorded, options, timeMs(time));
  if (data.release !== release) causes.push(otherRelease(data, release));
  if (!anonymized) {
    causes.push(...otherInputs(data.digests, { ...digests, decision: digest(recorded) }, hasDigest));
    const held = data.details === null ? recorded : withoutRefused(recorded);
    if (canonicalJson(held) !== canonicalJson(recordedProposal(data, null))) causes.push(DISAGREE);
  }
  return compared(recorded, decision, causes, { version: data.plannerVersion, anonymized });
}

const otherRelease = (data: { readonly release: string }, now: string): string =>
  `its plan is ${data.release}, and by the options on the log it would be ${now}`;

const DISAGREE = 'its event and its details disagree';

/** The inputs that differ from those of the recorded decision, by their digests. */
function otherInputs(
  recorded: CycleDecided['data']['digests'] | PlanProposed['data']['digests'],
  now: Readonly<Record<string, string>>,
  isOfSnapshot: LoadedSnapshot['hasDigest'],
): string[] {
  const parts: Readonly<Record<string, string>> = recorded;
  return ['snapshot', 'policies', 'state', 'options', 'decision']
    .filter((part) => (part === 'snapshot' ? !isOfSnapshot(recorded.snapshot) : parts[part] !== now[part]))
    .map((part) =>
      part === 'decision'
        ? 'the recorded decision is not the one it has the digest of'
        : `its ${part} is not the one that it was made of`,
    );
}

function compared(
  recorded: Decision | ProposalDecision,
  decision: Decision | ProposalDecision,
  causes: readonly string[],
  { version, anonymized }: { readonly version: string; readonly anonymized: boolean },
): ReplayVerdict {
  // Texts hold names inside sentences, which an anonymized recording tells otherwise.
  const a = anonymized ? withoutTexts(recorded) : recorded;
  const b = anonymized ? withoutTexts(decision) : decision;
  if (causes.length === 0 && canonicalJson(a) === canonicalJson(b)) return { verdict: 'identical' };
  const verdict = version === plannerVersion ? 'different' : 'otherVersion';
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
