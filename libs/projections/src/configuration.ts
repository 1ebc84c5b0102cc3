/** The options of planners: which are in force. */
import {
  type CompleteEngineOptions,
  completeEngineOptions,
  defaultEngineOptions,
  type EngineOptions,
  type LogEventOf,
} from '@kronos/contracts';
import { firstTime } from './controls.ts';
import type { StateDraft } from './draft.ts';
import type { Effects } from './effects.ts';
import type { AggregateState } from './state.ts';

/** The options that the aggregate's planner wrote last, as they are on the log; the defaults before its first decision. */
export const recordedOptions = ({ configured }: Pick<AggregateState, 'configured'>): EngineOptions =>
  configured?.options ?? defaultEngineOptions;

/** As {@link recordedOptions}, and complete: the options by which everybody but a digest goes. */
export const optionsOf = (state: Pick<AggregateState, 'configured'>): CompleteEngineOptions =>
  completeEngineOptions(recordedOptions(state));

/** The facts by which the options of a planner are in force or not. */
export type PlannerIdentity = {
  /** The log's last sequence when it started. */
  readonly startedAfter: number;
  readonly options: EngineOptions;
  readonly optionsDigest: string;
  readonly plannerVersion: string;
  /** Its options have been in force since it started. */
  readonly wasInForce: boolean;
};

/**
 * The rights of a planner over an aggregate. `inForce`: plan. `configure`: put its options on the log first. `yield`: plan
 * nothing, because a planner that started later has other options.
 */
export type PlannerRight =
  | { readonly kind: 'inForce' | 'configure' }
  | {
      readonly kind: 'yield';
      /** The planner that started later, and its options. */
      readonly to: string;
      readonly options: EngineOptions;
      readonly differing: readonly (keyof EngineOptions)[];
    };

/**
 * Of planners with different options, the one that started last wins. The log gives the order of the starts, not the
 * clocks: each planner states the log's last sequence at its start with its options. Between two that started at the same
 * sequence, the one that wrote its options last wins. Options without that sequence are of a planner that does not know
 * this rule; they never make another one yield.
 */
export function rightOf({ configured }: Pick<AggregateState, 'configured'>, own: PlannerIdentity): PlannerRight {
  if (configured === null) return { kind: 'configure' };
  const { writer } = configured;
  const startedLater =
    writer !== undefined &&
    (writer.startedAfter > own.startedAfter || (writer.startedAfter === own.startedAfter && own.wasInForce));
  if (configured.optionsDigest === own.optionsDigest)
    return { kind: startedLater || configured.plannerVersion === own.plannerVersion ? 'inForce' : 'configure' };
  return startedLater
    ? {
        kind: 'yield',
        to: writer.instance,
        options: configured.options,
        differing: differing(configured.options, own.options),
      }
    : { kind: 'configure' };
}

function differing(a: EngineOptions, b: EngineOptions): (keyof EngineOptions)[] {
  const fields = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort() as (keyof EngineOptions)[];
  return fields.filter((field) => JSON.stringify(a[field]) !== JSON.stringify(b[field]));
}

/** A planner wrote its options. */
function configured(draft: StateDraft, event: LogEventOf<'planner.configured'>): void {
  const { atMs } = draft;
  const f = draft.facts(event.aggregate);
  if (!firstTime(draft, f, event.id)) return;
  const { plannerVersion, optionsDigest, options, startedAfter } = event.data;
  const writer = startedAfter === undefined ? {} : { writer: { instance: event.by.instance, startedAfter } };
  f.configured = { sequence: draft.sequence, atMs, plannerVersion, optionsDigest, options, ...writer };
  // Another interval, limit or version may have time for all of the work.
  f.loweredWork = null;
}

export const configurationEffects = {
  'planner.configured': configured,
} satisfies Partial<Effects>;
