import { type CompleteEngineOptions, type Snapshot, timeMs } from '@kronos/contracts';
import { cycleBudget, type HostPreview, previewDrain } from '@kronos/placement';
import { type AggregateState, estimatedDuration, waitingPlan } from '@kronos/projections';
import { type Estimate, gibOfMove, hostActBlocked, inSequence, migrationWindow, windowText } from '@kronos/rules';
import { decideInput } from './memory.ts';

/** The preview of one host, with its aggregate. */
export type HostDrain = Omit<HostPreview, 'moves'> & {
  readonly aggregate: string;
  readonly snapshotTime: string;
  /** The moves of the preview, each with how long it takes. */
  readonly moves: readonly (HostPreview['moves'][number] & { readonly duration: Estimate })[];
  /** The duration of these moves; null: no plan may have a move. */
  readonly time: DrainTime | null;
  /** Why nothing would be done if a drain was asked for; null: nothing blocks it. */
  readonly blockedBy: string | null;
  /** The reasons for which the moves wait after the service is disabled: another plan, a window, an approval. Sentences without a full stop. */
  readonly holds: readonly string[];
};

export type DrainTime = Estimate & {
  /** Number of plans: each has at most as many moves as the policies allow in a cycle. */
  readonly plans: number;
};

export type DrainInput = {
  readonly snapshot: Snapshot;
  readonly state: AggregateState;
  readonly hosts: readonly string[];
  /** Paces of moves in any aggregate. */
  readonly paces: readonly number[];
};

/** The preview of draining these hosts now, by a snapshot. Hosts that the snapshot does not have are left out. */
export function hostDrains({ snapshot, state, hosts: wanted, paces }: DrainInput): HostDrain[] {
  const here = wanted.filter((name) => snapshot.hosts.some((host) => host.name === name));
  if (here.length === 0) return [];
  const input = decideInput(state, snapshot);
  const { hosts } = previewDrain(input, here);
  // Without access to the executor's own dry_run, which its log states.
  const blocked = hostActBlocked(state, 'disable', { executorDryRun: false });
  const waiting = waitingPlan(state, timeMs(snapshot.time));
  const holds = [
    ...(waiting?.open === true ? [`No plan is made until ${waiting.plan.id} is approved, rejected or expired`] : []),
    ...holdsOf(input.options, timeMs(snapshot.time)),
  ];
  return hosts.map((host) => {
    const moves = host.moves.map((move) => {
      const way = { from: host.host, destination: move.to, gib: gibOfMove(move) };
      return { ...move, duration: estimatedDuration(state, way, paces) };
    });
    const time = drainTime(
      moves.map(({ duration }) => duration),
      cycleBudget(snapshot),
      input.options,
    );
    // The end of a drain enables a host that the drain disabled.
    const own = [state, ...state.elsewhere].some(({ drains }) => drains.get(host.host)?.disabled?.byKronos === true);
    const disabled = own ? null : host.disabled;
    return {
      aggregate: snapshot.aggregate,
      snapshotTime: snapshot.time,
      ...host,
      disabled,
      moves,
      time,
      blockedBy: blocked ?? sharedBy(snapshot, host.host),
      holds,
    };
  });
}

/** A host that is in several aggregates in scope makes each of them unplannable: no VM would leave it. */
function sharedBy({ aggregate, hosts }: Snapshot, name: string): string | null {
  const others = hosts.find((host) => host.name === name)?.otherAggregates ?? [];
  if (others.length === 0) return null;
  return `${name} is in ${[aggregate, ...others].join(' and in ')}, all in scope: no VM of it moves until it is in one of them`;
}

/** The reasons for which the moves of a drain wait after the service is disabled. */
export function holdsOf(options: CompleteEngineOptions, nowMs: number): string[] {
  const { approval, evacuationIgnoresWindows, windows, blackouts, timezone } = options;
  const window = windowText(migrationWindow({ windows, blackouts, timezone }, nowMs));
  return [
    ...(window === null || evacuationIgnoresWindows ? [] : [`The moves are ${window}`]),
    ...(approval === 'manual' ? ['Each plan waits for kronos approve'] : []),
  ];
}

/**
 * The duration of one host's moves: one after the other, because Nova runs one live migration per source at a time, and in plans. Between two
 * plans pass the cooldown, unless evacuation ignores it, or the time that a snapshot must be later than the last end of a move. A plan waits for
 * the next snapshot.
 *
 * @param budget the maximum number of moves of a plan
 */
export function drainTime(
  moves: readonly Estimate[],
  budget: number,
  options: CompleteEngineOptions,
): DrainTime | null {
  if (moves.length > 0 && budget <= 0) return null;
  const { cooldownSeconds, evacuationIgnoresCooldown, settleSeconds, evaluationIntervalSeconds } = options;
  const cooldownMs = evacuationIgnoresCooldown ? 0 : cooldownSeconds * 1000;
  const intervalMs = evaluationIntervalSeconds * 1000;
  const plans = Math.ceil(moves.length / budget) || 0;
  let [expectedMs, lowMs, highMs] = [0, 0, 0];
  let whole = true;
  let measured = true;
  for (let plan = 0; plan < plans; plan++) {
    const batch = inSequence(moves.slice(plan * budget, (plan + 1) * budget));
    const last = plan === plans - 1;
    const until = (ms: number): number => (last ? ms : Math.max(ms + settleSeconds * 1000, cooldownMs));
    expectedMs += intervalMs / 2 + until(batch.expectedMs);
    lowMs += until(batch.interval?.lowMs ?? 0);
    highMs += intervalMs + until(batch.interval?.highMs ?? 0);
    whole &&= batch.interval !== null;
    measured &&= batch.measured;
  }
  return { expectedMs, interval: whole ? { lowMs, highMs } : null, measured, plans };
}
