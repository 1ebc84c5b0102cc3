import type { TaskFacts } from '@kronos/projections';

/** The progress of a move between cells, after the name of its VM, and its start (ms since the epoch). */
export function cellStage({ slot, status, step, settleAsked }: TaskFacts): {
  readonly text: string;
  readonly sinceMs: number | null;
} {
  if (slot === null) return { text: status === 'retryPending' ? 'waits for its next attempt' : 'waits', sinceMs: null };
  const { verifying, verified, settle } = slot.cell ?? {};
  if (settle)
    return {
      text: settle.act === 'confirm' ? 'is being confirmed' : `is being reverted: ${settle.reason.text}`,
      sinceMs: settle.atMs,
    };
  if (settleAsked !== undefined)
    return { text: `is to be ${settleAsked.act}ed, as ${settleAsked.by} asked`, sinceMs: settleAsked.atMs };
  if (verified)
    return {
      text: step.cell?.confirm === 'manual' ? 'is verified and waits to be confirmed or reverted' : 'is verified',
      sinceMs: verified.atMs,
    };
  if (verifying) return { text: 'is in VERIFY_RESIZE and being checked', sinceMs: verifying.atMs };
  return { text: 'moves', sinceMs: slot.startedAtMs };
}
