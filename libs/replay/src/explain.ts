import { canonicalJson, type Snapshot } from '@kronos/contracts';
import { decideInput } from '@kronos/cycle';
import { type Explanation, explain } from '@kronos/placement';
import { NotOnTheLog } from './errors.ts';
import { type FoundDecision, findDecision, type WantedDecision } from './find.ts';
import type { History } from './history.ts';

/** A recorded decision, run again with explanation on. */
export type Explained = FoundDecision & {
  /** Null where it cannot be run again: then there is what the log holds, and `missing` says why. */
  readonly explanation: Explanation | null;
  /** Whether running it again gave the recorded decision; null where it was not run. */
  readonly same: boolean | null;
};

/** @throws NotOnTheLog */
export async function explainDecision(history: History, wanted: WantedDecision): Promise<Explained> {
  const found = await findDecision(history, wanted);
  const { snapshot, options, state, decision } = found;
  if (snapshot === null) return { ...found, explanation: null, same: null };
  if (options === null)
    return { ...found, missing: 'the log names no options before this decision', explanation: null, same: null };
  const explanation = explain(decideInput(state, snapshot, options));
  const same = canonicalJson(explanation.decision) === canonicalJson(decision);
  return { ...found, explanation, same };
}

/**
 * The decision about the aggregate that something was in: the first whose snapshot, or without a snapshot whose log, has it.
 *
 * @throws NotOnTheLog when none has
 */
export async function explainWhere(
  history: History,
  wanted: WantedDecision,
  what: {
    readonly name: string;
    readonly inSnapshot: (snapshot: Snapshot) => boolean;
    readonly onLog: (found: FoundDecision) => boolean;
  },
): Promise<Explained> {
  let decisions = 0;
  for (const aggregate of wanted.aggregates) {
    const explained = await explainDecision(history, { ...wanted, aggregates: [aggregate] }).catch((error: unknown) => {
      if (error instanceof NotOnTheLog) return null;
      throw error;
    });
    if (explained === null) continue;
    decisions += 1;
    if (explained.snapshot === null ? what.onLog(explained) : what.inSnapshot(explained.snapshot)) return explained;
  }
  throw new NotOnTheLog(
    `the ${wanted.atMs === undefined ? 'last decisions' : 'decisions at that time'} do not contain ${what.name}`,
    decisions === 0
      ? 'No decision has been made yet: kronos status.'
      : 'Give another time (--at). kronos vms and kronos hosts list what the newest snapshots have.',
  );
}
