import { byText, type CompleteEngineOptions, iso, type Reason, type Snapshot, timeMs } from '@kronos/contracts';
import { aggregateCooldown, approval } from '@kronos/rules';
import type { ReasonCode } from './reasons.ts';
import type { Memory } from './snapshot/memory.ts';
import type { JudgedPolicy } from './snapshot/scoring.ts';

/** A reason that ends a cycle before planning. Evacuations can be allowed to ignore `cooldown`, and no other gate. */
export type Gate = { readonly reason: Reason; readonly passable: boolean };

/**
 * The gates that block the cycle, in the order of their checks: the first one ends the cycle. `now` is in ms since the epoch.
 */
export function blockingGates(
  {
    snapshot,
    memory,
    options,
  }: { readonly snapshot: Snapshot; readonly memory: Memory; readonly options: CompleteEngineOptions },
  judged: readonly JudgedPolicy[],
  now: number,
): Gate[] {
  const gates: Gate[] = [];
  const block = (code: ReasonCode, text: string, detail: NonNullable<Reason['detail']> = {}): void => {
    gates.push({ reason: { code, text, detail }, passable: code === 'cooldown' });
  };
  if (snapshot.purpose === 'record') block('record-only', 'the snapshot was taken to be kept, not to be planned');
  const [unread, paused, ...seen] = [unreadableEvent(memory), pause(memory), ...snapshotGates(snapshot)];
  const waiting = memory.waitingPlan;
  for (const reason of [unread, paused]) if (reason !== null) gates.push({ reason, passable: false });
  if (waiting !== null) {
    const { open, expiresAtMs } = approval(waiting, now);
    const until = iso(expiresAtMs);
    if (open)
      block('awaiting-approval', `plan ${waiting.planId} waits for approval until ${until}`, {
        plan: waiting.planId,
        until,
      });
  }
  for (const reason of seen) gates.push({ reason, passable: false });
  if (memory.lastMoveEndMs !== null) {
    const ended = iso(memory.lastMoveEndMs);
    const settled = memory.lastMoveEndMs + options.settleSeconds * 1000;
    if (timeMs(snapshot.observedFrom) < settled)
      block('settling', `a move ended at ${ended}; the next plan needs a snapshot from ${iso(settled)} or later`, {
        lastMoveEndAt: ended,
        until: iso(settled),
      });
  }
  if (options.requireAllPolicies) {
    const skipped = judged.filter((j) => j.reason !== null).map((j) => j.policy.name);
    if (skipped.length > 0) block('policies-skipped', `${skipped.join(', ')}: without data`, { policies: skipped });
  }
  const cooldown = aggregateCooldown({ ...memory, waiting }, now, options);
  if (cooldown !== null) {
    const after = CAUSES[cooldown.cause];
    const [at, until] = [iso(cooldown.sinceMs), iso(cooldown.untilMs)];
    block('cooldown', `cooling down until ${until} after a ${after} at ${at}`, { after, at, until });
  }
  return gates;
}

/** The gates that block every kind of plan for the aggregate. */
export const aggregateGates = (snapshot: Pick<Snapshot, 'hosts' | 'problems'>, memory: Memory): Reason[] =>
  [unreadableEvent(memory), pause(memory), ...snapshotGates(snapshot)].filter((reason) => reason !== null);

function unreadableEvent({ unreadable }: Memory): Reason | null {
  if (unreadable === null) return null;
  const { sequence, type, version } = unreadable;
  const text = `the event ${type} v${version ?? '?'} at ${sequence} is not understood`;
  return { code: 'unreadable-event', text, detail: { sequence, type, version } };
}

function pause({ paused }: Memory): Reason | null {
  if (paused === null) return null;
  const [by, at] = [paused.by, iso(paused.atMs)];
  return { code: 'paused', text: `paused by ${by} at ${at}`, detail: { at, by } };
}

function snapshotGates({ hosts, problems }: Pick<Snapshot, 'hosts' | 'problems'>): Reason[] {
  const reasons: Reason[] = [];
  const shared = hosts
    .filter((host) => host.otherAggregates.length > 0)
    .map((host) => host.name)
    .sort(byText);
  if (shared.length > 0)
    reasons.push({
      code: 'host-in-two-aggregates',
      text: `${shared[0]} is in another configured aggregate too`,
      detail: { hosts: shared },
    });
  const sorted = [...problems].sort((a, b) => byText(a.code + a.text, b.code + b.text));
  if (sorted.length > 0)
    reasons.push({
      code: 'snapshot-problems',
      text: sorted[0]?.text ?? '',
      detail: { problems: sorted.map((p) => p.code) },
    });
  return reasons;
}

const CAUSES = { released: 'release', rejected: 'rejection', expired: 'expiry' } as const;
