import {
  byText,
  type CellMethod,
  type Course,
  DAY_MS,
  type EngineOptions,
  type HostAct,
  MAX_BREAKER_SECONDS,
  MAX_COOLDOWN_SECONDS,
  MAX_GROWN_COOLDOWN_SECONDS,
  type PlanLoads,
  type PolicyImbalance,
  type Reason,
  type Remedy,
  type ServerBefore,
  type Step,
} from '@kronos/contracts';
import { type Comparison, type CooldownFacts, noSurprises, noWaits, type Surprises, type Waits } from '@kronos/rules';

/**
 * The folded event log: facts and their times, never deadlines. Times are milliseconds since the epoch,
 * taken from the bodies of the events and clamped to the server's timestamps. No value here depends on the reader's clock
 * or options.
 */
export type LogState = {
  /** Stream sequence of the last event folded; 0: none. */
  readonly sequence: number;
  /** The facts about all aggregates. */
  readonly all: AllFacts;
  readonly aggregates: ReadonlyMap<string, AggregateFacts>;
};

/** Facts that commands can state, about one aggregate or about all of them. */
export type ControlFacts = {
  /** Paused and not resumed since. A pause of all and a pause of one are lifted each by its own resume. */
  readonly paused: Asked | null;
  /** Server uuid -> the quarantine that an operator set and that is not released. */
  readonly operatorQuarantines: ReadonlyMap<string, OperatorQuarantine>;
  /** Events that this version could not read and that are not skipped, in the order of the log. */
  readonly unreadables: readonly UnreadableFact[];
  /** The skipped events, for ever. */
  readonly skips: readonly SkippedFact[];
  /** Ids of the latest commands and configurations, oldest first: a second one is the same act. */
  readonly seen: ReadonlySet<string>;
};

export type AllFacts = ControlFacts & {
  /** An event that no restore published was folded: from here on events have the server's timestamp and no other. */
  readonly live: boolean;
};

/** The facts about one aggregate alone. Decisions read {@link AggregateState}. */
export type AggregateFacts = ControlFacts & {
  /** The options and the planner version in force. */
  readonly configured: Configured | null;
  /** The last decided snapshot. */
  readonly decided: Decided | null;
  /**
   * The work limit of the last decision where its planner was too slow for that of the options, and since when decisions have had it. Null:
   * the last decision had that of the options, or the options have changed since.
   */
  readonly loweredWork: { readonly limit: number; readonly sinceMs: number } | null;
  /** The course of the last decision that looked for one; null: it found none, or had nothing to do after its plan. */
  readonly course: CourseFacts | null;
  /** Policy name -> evaluations in a row in which it was detected, as the last decision counted. */
  readonly sustained: Readonly<Record<string, number>>;
  /** The plan that waits for approval: at most one. */
  readonly waiting: string | null;
  /** The plan that waits for approval, and released ones that are not done or not dispatched. By plan id. */
  readonly plans: ReadonlyMap<string, PlanFacts>;
  /** Every task of the released plans in `plans`, the ended ones too. By task id. */
  readonly tasks: ReadonlyMap<string, TaskFacts>;
  /** The last plans that are over, for people; oldest first, at most {@link RECENT_PLANS}. */
  readonly recentPlans: readonly FinishedPlan[];
  readonly lastRelease: CooldownFacts['lastRelease'];
  /** The last proposal that ended without release. */
  readonly lastRefusal: CooldownFacts['lastRefusal'];
  /** When the last move ended: completed, or failed after it had been started. */
  readonly lastMoveEnd: { readonly taskId: string; readonly atMs: number } | null;
  /** Server uuid -> times of its latest releases, oldest first, at most {@link RECENT_RELEASES}; at most 7 days old. */
  readonly vmReleases: ReadonlyMap<string, readonly number[]>;
  /**
   * Server uuid -> the last move of it that left it in ERROR, unless a later move of it ended otherwise or an operator released
   * the server. The latest {@link RECENT_DAMAGED}.
   */
  readonly damaged: ReadonlyMap<string, DamagedMove>;
  /** Server uuid -> its last final failure of a kind that quarantines, unless released or gone since. */
  readonly vmFailures: ReadonlyMap<string, VmFailure>;
  /** Host -> its drain, from the command until the host is enabled or left disabled. At most {@link MAX_DRAINS}. */
  readonly drains: ReadonlyMap<string, DrainFacts>;
  /** The last drains that are over, for people; oldest first, at most {@link RECENT_DRAINS}. */
  readonly recentDrains: readonly FinishedDrain[];
  /** Host -> times of the failures it was to blame for, oldest first, at most {@link RECENT_HOST_FAILURES}. */
  readonly hostFailures: ReadonlyMap<string, readonly number[]>;
  /**
   * `refusalKey` -> a destination that Nova refused for a server, by a rule of its scheduler or a check of its computes. At most
   * {@link MAX_REFUSALS}, the newest.
   */
  readonly refusals: ReadonlyMap<string, RefusalFact>;
  /** Server -> the last move of it that Kronos completed. At most {@link MAX_OWN_MOVES}, the newest. */
  readonly ownMoves: ReadonlyMap<string, OwnMoveFact>;
  /** Paces of the latest moves, ms per GiB as `paceOfMove` gives them, oldest first; at most `PACES_KEPT`. */
  readonly paces: readonly number[];
  /**
   * `pairKey` -> paces of the latest moves from one host to another, likewise, at most `PACES_OF_PAIR`, and the sequence of the last one. The
   * {@link PAIRS_KEPT} pairs with the latest moves.
   */
  readonly pairPaces: ReadonlyMap<string, { readonly sequence: number; readonly paces: readonly number[] }>;
  /** Bytes per second that the latest moves copied, as far as Nova counted them, oldest first; at most `PACES_KEPT`. */
  readonly copyRates: readonly number[];
  /** The waits of the forecast and their results. */
  readonly waits: Waits;
  /** How far the imbalances of the last cycles were from what was expected. */
  readonly surprises: Surprises;
  /** Host -> what its moves should bring, until it was measured. At most two for each move that a plan has or had a while ago. */
  readonly watched: ReadonlyMap<string, WatchedHost>;
  /** Policy -> how well loads were predicted. Only policies of the last decision. */
  readonly calibration: ReadonlyMap<string, PolicyCalibration>;
};

/** A host that moves change, and what they change by policy. */
export type WatchedHost = {
  /** Values in the last snapshot before the first of the moves. */
  readonly before: Readonly<Record<string, number>>;
  /** The sum of its VMs then, less those that left. */
  readonly residents: Readonly<Record<string, number>>;
  /** Uuids of those that arrived. */
  readonly arrived: readonly string[];
  /** The predicted change by completed moves: loads that arrived less loads that left. */
  readonly change: Readonly<Record<string, number>>;
  /** Plan of the last of them, and when it ended; null: none has completed. */
  readonly planId: string | null;
  readonly endedMs: number | null;
  /** It was compared a minute after. */
  readonly soon: boolean;
};

/** Comparisons of predicted and measured loads of a policy. */
export type PolicyCalibration = {
  /** One minute after moves, and ten minutes after: the number, and the sum of the differences. */
  readonly soon: { readonly count: number; readonly error: number };
  readonly later: { readonly count: number; readonly error: number };
  /** The latest ones ten minutes after, oldest first, at most {@link COMPARISONS_KEPT}. */
  readonly last: readonly Comparison[];
};

/** One aggregate as decisions see it: its own facts and those that hold for all. Made by `aggregateState`. */
export type AggregateState = Omit<AggregateFacts, 'seen' | 'paused' | 'unreadables'> & {
  /** The other aggregates, by name: a VM or a host may have been in one of them, and what is known of it there counts on. */
  readonly elsewhere: readonly Elsewhere[];
  /** The first event that makes it unplannable. */
  readonly unreadable: UnreadableFact | null;
  readonly aggregate: string;
  /** The pause of this aggregate and the pause of all; it runs when both are null. */
  readonly paused: { readonly here: Asked | null; readonly everywhere: Asked | null };
};

/** Another aggregate, as far as it knows VMs and hosts. */
export type Elsewhere = { readonly aggregate: string } & Pick<
  AggregateFacts,
  | 'plans'
  | 'tasks'
  | 'vmReleases'
  | 'vmFailures'
  | 'operatorQuarantines'
  | 'hostFailures'
  | 'refusals'
  | 'ownMoves'
  | 'drains'
>;

/** A command of a person, as far as it is kept. */
export type Asked = {
  readonly sequence: number;
  readonly atMs: number;
  readonly commandId: string;
  /** The person. */
  readonly by: string;
  readonly comment: string | null;
};

export type Configured = {
  readonly sequence: number;
  readonly atMs: number;
  readonly plannerVersion: string;
  readonly optionsDigest: string;
  readonly options: EngineOptions;
  /** The planner that wrote it, and the log's last sequence when it started; absent where the event does not say. */
  readonly writer?: { readonly instance: string; readonly startedAfter: number };
};

type Decided = {
  readonly sequence: number;
  readonly snapshotId: string;
  /** Ids of the snapshots that were decided last, this one too, oldest first: none is decided twice. */
  readonly recent: readonly string[];
  /** Time of the snapshot: the decision's `now`. */
  readonly snapshotMs: number;
  readonly cycle: number;
  readonly outcome: 'planned' | 'quiet' | 'gated';
  readonly release: 'released' | 'proposed' | 'dryRun' | 'none';
  readonly reason: Reason;
  /** Imbalances that it found. */
  readonly before: { readonly combined: number | null; readonly policies: readonly PolicyImbalance[] };
};

/** A course as far as it is kept. */
export type CourseFacts = Pick<Course, 'reaches' | 'moves' | 'cycles' | 'seconds'> & {
  /** Moves of the smallest part that may be made at once. Absent: a part fits the budget. */
  readonly neededBudget?: number;
  /** The plan that is its first part; null: no part fits. */
  readonly planId: string | null;
  /** Time of the snapshot of its decision. */
  readonly atMs: number;
};

/** A step without its explanation, which stays in the plan's event. */
export type StepFacts = Omit<Step, 'why'>;

export type PlanFacts = {
  readonly id: string;
  readonly sequence: number;
  readonly decidedAtMs: number;
  readonly state: 'proposed' | 'released';
  /** The value in force at its decision; null where the log names no options: then the plan cannot be approved. */
  readonly approvalTtlSeconds: number | null;
  readonly planTtlSeconds: number | null;
  /** Steps that can still be approved. Empty once the plan is released. */
  readonly proposed: readonly StepFacts[];
  /** Numbers of the steps that were rejected, ascending. */
  readonly rejected: readonly number[];
  readonly release: PlanRelease | null;
  readonly dispatched: { readonly sequence: number; readonly atMs: number; readonly tasks: number } | null;
  /** Ids of the released steps' tasks, in step order. */
  readonly tasks: readonly string[];
  readonly completed: number;
  /** Of those completed, how many ended with a warning. */
  readonly warned: number;
  readonly failed: number;
  readonly skipped: number;
  /** The loads of its hosts. Absent: none of its steps needs them, or it was made before 0.2. */
  readonly loads?: PlanLoads;
  /** Of a plan between cells: where its servers go, and the command that asked for it. Absent: of a cycle. */
  readonly cells?: { readonly to: string; readonly commandId: string };
  /** Of a plan that makes room: the command that asked for it. Absent: of a cycle, or between cells. */
  readonly capacity?: { readonly commandId: string };
};

/** The event that released a plan. */
export type PlanRelease = {
  readonly sequence: number;
  readonly atMs: number;
  /** The approval, or null where the plan's own event released it. */
  readonly approval: Asked | null;
};

type TaskStatus = 'waiting' | 'started' | 'retryPending' | 'completed' | 'failed' | 'skipped';

export type TaskFacts = {
  readonly id: string;
  readonly planId: string;
  readonly step: StepFacts;
  readonly status: TaskStatus;
  /** The attempt under way, the one to come, or the last one. */
  readonly attempt: number;
  /** Where that attempt goes. */
  readonly destination: string;
  /** Start of the first attempt or of the next retry: release + delay, or the time that the failed attempt named. */
  readonly notBeforeMs: number;
  /** The slot that it holds; null unless `status` is `started`. */
  readonly slot: Slot | null;
  readonly end: TaskEnd | null;
  /** The last failed attempt, final or not. */
  readonly lastFailure: AttemptFailure | null;
  readonly cancelAsked: Asked | null;
  readonly abortAsked: Asked | null;
  /**
   * An operator closed it: its holder ends it when Nova no longer works on its server. `force`: whatever Nova shows, and a planner ends it if nobody
   * holds it.
   */
  readonly closeAsked: (Asked & { readonly force?: true }) | null;
  /** An operator wants a move between cells confirmed, or reverted. The first of both counts. Absent: nobody does. */
  readonly settleAsked?: Asked & { readonly act: SettleAct };
};

/** The acts that end VERIFY_RESIZE. */
export type SettleAct = 'confirm' | 'revert';

/** A started attempt without an end. */
export type Slot = {
  readonly sequence: number;
  readonly startedAtMs: number;
  /** The executor that follows it. */
  readonly executor: string;
  readonly attempt: number;
  readonly from: string;
  readonly destination: string;
  /** Ids of the server's groups. */
  readonly groups: readonly string[];
  readonly newestMigrationId: number;
  readonly forced: boolean;
  readonly ramMb: number;
  readonly diskGb: number;
  /** Nova's names for it, once observed. */
  readonly migrationId: number | null;
  readonly requestId: string | null;
  /** The first time that Nova refused to abort it; null when it never did. */
  readonly abortRefused: AbortRefused | null;
  /** An executor works alone on it because it may be a poison message; null while none does. */
  readonly suspected: { readonly tries: number; readonly atMs: number } | null;
  /** Of a move between cells. */
  readonly cell?: CellSlot;
};

/** The progress of a move between cells. */
export type CellSlot = {
  readonly method: CellMethod;
  readonly oldFlavor: string | null;
  readonly newFlavor: string | null;
  /** The server as it was, which it must be again afterwards. */
  readonly before: ServerBefore;
  /** Uuids of its migrations before the attempt. */
  readonly knownMigrations: readonly string[];
  /** The same in both cells; null: not seen yet. */
  readonly migrationUuid: string | null;
  /** In VERIFY_RESIZE on this host. */
  readonly verifying: { readonly atMs: number; readonly host: string } | null;
  /** Its checks have passed for as long as its step says. */
  readonly verified: { readonly atMs: number } | null;
  /** The act that an executor has requested of Nova, or is about to request: the first one counts. */
  readonly settle: {
    readonly sequence: number;
    readonly atMs: number;
    readonly act: SettleAct;
    readonly cause: string;
    readonly reason: Reason;
  } | null;
};

type AbortRefused = {
  readonly sequence: number;
  readonly atMs: number;
  /** HTTP status of Nova's answer. */
  readonly status: number;
  /** Nova's own words. */
  readonly text: string;
};

/** A move that ended with its server in ERROR. */
export type DamagedMove = {
  readonly sequence: number;
  readonly atMs: number;
  readonly planId: string;
  readonly taskId: string;
  readonly serverId: string;
  readonly serverName: string;
  readonly from: string;
  readonly destination: string;
  /** The host on which the server was seen then; null where the event does not name it. */
  readonly host: string | null;
  readonly reasons: readonly Reason[];
};

export type TaskEnd = {
  readonly sequence: number;
  readonly atMs: number;
  /** The host on which the server was seen when the move completed; else null. */
  readonly host: string | null;
  /** Of a completed move: deviations from a plain success. Empty: none. */
  readonly warnings: readonly Reason[];
};

export type AttemptFailure = {
  readonly sequence: number;
  readonly atMs: number;
  readonly attempt: number;
  readonly destination: string;
  readonly errorType: string;
  readonly reason: Reason;
  readonly final: boolean;
};

/** A destination that Nova refused for a server. */
export type RefusalFact = {
  readonly sequence: number;
  readonly atMs: number;
  readonly serverId: string;
  readonly host: string;
  /** Nova's words. */
  readonly text: string;
  /** Of the server and of the destination, as the first decision afterwards saw them; null: none has. */
  readonly shape: string | null;
  readonly mark: string | null;
};

/** Refusals that are remembered for an aggregate. */
export const MAX_REFUSALS = 1000;

/** A move that Kronos completed. */
type OwnMoveFact = {
  readonly sequence: number;
  readonly atMs: number;
  readonly from: string;
  readonly to: string;
  /** Nova's id of the migration; null: not known. */
  readonly migrationId: number | null;
};
export const MAX_OWN_MOVES = 2000;

type VmFailure = {
  readonly sequence: number;
  readonly atMs: number;
  readonly taskId: string;
  readonly errorType: string;
  readonly text: string;
  /** The time of the first snapshot without this VM, when it was in none since; null while it is there. */
  readonly absentSinceMs: number | null;
};

export type OperatorQuarantine = Asked & {
  /** -1: until released. */
  readonly seconds: number;
};

export type FinishedPlan = {
  readonly id: string;
  readonly sequence: number;
  readonly outcome: 'done' | 'rejected' | 'expired' | 'superseded' | 'withdrawn';
  readonly decidedAtMs: number;
  readonly releasedAtMs: number | null;
  readonly endedAtMs: number;
  readonly tasks: number;
  readonly completed: number;
  /** Of those completed, how many ended with a warning. */
  readonly warned: number;
  readonly failed: number;
  readonly skipped: number;
};

/** A host that an operator asked to be emptied. The id of the command is the id of the drain. */
export type DrainFacts = {
  readonly host: string;
  readonly asked: Asked;
  readonly undrainAsked: Asked | null;
  /** The executor that may change the service now, or may have. */
  readonly claim: {
    readonly sequence: number;
    readonly atMs: number;
    readonly act: HostAct;
    readonly attempt: number;
    readonly executor: string;
  } | null;
  /** The last attempt that failed; null once the host is disabled. */
  readonly failure: {
    readonly sequence: number;
    readonly atMs: number;
    readonly act: HostAct;
    readonly attempt: number;
    readonly status: number | null;
    readonly text: string;
  } | null;
  readonly disabled: {
    readonly sequence: number;
    readonly atMs: number;
    /** False: it was disabled before the drain, so it is not Kronos' to enable. */
    readonly byKronos: boolean;
    /** As Nova showed it. */
    readonly reason: string | null;
  } | null;
  /** As the last decision saw it; null: none has since the host was disabled. */
  readonly progress: {
    readonly snapshotId: string;
    readonly atMs: number;
    readonly state: 'done' | 'stuck' | 'running';
    /** Decisions in a row that saw this state and as many VMs. */
    readonly cycles: number;
    /** Time of the first of them. */
    readonly sinceMs: number;
    /** VMs on the host. */
    readonly left: number;
    /** Times at which VMs left it after that count, at most {@link DEPARTURES_KEPT}. */
    readonly departures: readonly number[];
    /** The reasons for which VMs wait that are not stuck, by code, with the name of one of them. */
    readonly waits: readonly {
      readonly code: string;
      readonly text: string;
      readonly count: number;
      readonly serverName: string;
    }[];
    readonly stuck: readonly { readonly serverId: string; readonly serverName: string; readonly reason: Reason }[];
  } | null;
  /** Nova had no server on the host. */
  readonly drained: { readonly sequence: number; readonly atMs: number } | null;
};

export type FinishedDrain = {
  readonly host: string;
  readonly asked: Asked;
  readonly undrainAsked: Asked | null;
  readonly drainedAtMs: number | null;
  readonly endedAtMs: number;
  readonly sequence: number;
  /** `withdrawn`: before anything was done. */
  readonly outcome: 'enabled' | 'enabledByOthers' | 'leftDisabled' | 'withdrawn';
  /** Why the host was left disabled; else null. */
  readonly text: string | null;
};

export type UnreadableFact = {
  readonly sequence: number;
  /** The aggregate that the event addressed. */
  readonly aggregate: string;
  readonly claimedType: string;
  /** The version needed to read it; null where the event names none. */
  readonly claimedVersion: number | null;
  readonly problem: string;
  readonly remedy: Remedy;
  /** The last of the events that are counted as this one, because there were too many; else `sequence`. */
  readonly through: number;
};

/** Unreadable events that a custodian skipped. */
export type SkippedFact = Asked & { readonly events: readonly UnreadableFact[] };

/** Comparisons of loads that are kept of a policy: a few moves of each host. */
export const COMPARISONS_KEPT = 200;

/** Finished plans kept for people, per aggregate. */
export const RECENT_PLANS = 50;
/** Servers in ERROR after a move that are kept per aggregate. */
export const RECENT_DAMAGED = 256;
/** Drains of an aggregate at one time; further ones are without effect. */
export const MAX_DRAINS = 1000;
/** Departures of a drain that are kept: more than any plan of one cycle has moves. */
export const DEPARTURES_KEPT = 500;
/** Plans between cells of one aggregate that wait for approval. */
export const MAX_CELL_PLANS = 20;
/** Finished drains kept for people, per aggregate. */
export const RECENT_DRAINS = 50;
/** Release times kept per VM, for the adaptive cooldown. */
export const RECENT_RELEASES = 16;
/** Pairs of source and destination whose paces are kept per aggregate: those with the latest moves. */
export const PAIRS_KEPT = 256;
/** Failure times kept per host, for the breaker. */
export const RECENT_HOST_FAILURES = 64;
/** Unreadable events kept one by one; later ones are counted together, and skipped together. */
export const UNREADABLE_KEPT = 100;
/** Command ids kept per aggregate. */
export const RECENT_COMMANDS = 1000;
/** Facts are kept for this time after they can no longer matter: clocks differ. */
const MARGIN_MS = 3_600_000;
/** A release of a VM is forgotten this long after it: no cooldown lasts longer. */
export const FORGET_RELEASE_MS = MAX_COOLDOWN_SECONDS * 1000 + MARGIN_MS;
/** Earlier releases than this before the last one do not make its cooldown grow. */
export const FORGET_EARLIER_RELEASE_MS = MAX_GROWN_COOLDOWN_SECONDS * 1000 + MARGIN_MS;
/** A host's failure is forgotten this long after it: no window and duration of the breaker last longer together. */
export const FORGET_HOST_FAILURE_MS = 2 * MAX_BREAKER_SECONDS * 1000 + MARGIN_MS;
/** A quarantine that an operator set for a time is forgotten this long after its end. */
export const FORGET_QUARANTINE_MS = MARGIN_MS;
/**
 * The failure of a VM is forgotten when the VM has been absent from the aggregate this long. By an option it may
 * quarantine the VM until it is released, so it is not forgotten while the VM is there.
 */
export const FORGET_ABSENT_MS = 7 * DAY_MS;

const noControls: ControlFacts = {
  paused: null,
  operatorQuarantines: new Map(),
  unreadables: [],
  skips: [],
  seen: new Set(),
};

export const initialAllFacts: AllFacts = { ...noControls, live: false };

export const initialAggregateFacts: AggregateFacts = {
  ...noControls,
  configured: null,
  decided: null,
  loweredWork: null,
  course: null,
  sustained: {},
  waiting: null,
  plans: new Map(),
  tasks: new Map(),
  recentPlans: [],
  lastRelease: null,
  lastRefusal: null,
  lastMoveEnd: null,
  vmReleases: new Map(),
  damaged: new Map(),
  vmFailures: new Map(),
  drains: new Map(),
  recentDrains: [],
  hostFailures: new Map(),
  refusals: new Map(),
  ownMoves: new Map(),
  paces: [],
  pairPaces: new Map(),
  copyRates: [],
  waits: noWaits,
  surprises: noSurprises,
  watched: new Map(),
  calibration: new Map(),
};

/** The state before the first event. */
export const initialLogState = (): LogState => ({ sequence: 0, all: initialAllFacts, aggregates: new Map() });

/** One aggregate's facts together with those that hold for all; an aggregate the log does not know has none. */
export function aggregateState(state: LogState, aggregate: string): AggregateState {
  const {
    paused,
    seen: _,
    operatorQuarantines,
    unreadables,
    skips,
    ...own
  } = state.aggregates.get(aggregate) ?? initialAggregateFacts;
  return {
    aggregate,
    ...own,
    elsewhere: elsewhereOf(state, aggregate),
    paused: { here: paused, everywhere: state.all.paused },
    operatorQuarantines: mergeQuarantines(operatorQuarantines, state.all.operatorQuarantines),
    unreadable: first(unreadables[0], state.all.unreadables[0]),
    skips:
      state.all.skips.length === 0 ? skips : [...skips, ...state.all.skips].sort((a, b) => a.sequence - b.sequence),
  };
}

/** Of states that were asked for before: all aggregates, by name. Each of them is asked about again and again, by every aggregate. */
const everywhere = new WeakMap<LogState['aggregates'], readonly Elsewhere[]>();

function elsewhereOf({ aggregates }: LogState, own: string): Elsewhere[] {
  const all =
    everywhere.get(aggregates) ??
    [...aggregates]
      .sort(([a], [b]) => byText(a, b))
      .map(([aggregate, facts]) => ({
        aggregate,
        plans: facts.plans,
        tasks: facts.tasks,
        vmReleases: facts.vmReleases,
        vmFailures: facts.vmFailures,
        operatorQuarantines: facts.operatorQuarantines,
        hostFailures: facts.hostFailures,
        refusals: facts.refusals,
        ownMoves: facts.ownMoves,
        drains: facts.drains,
      }));
  everywhere.set(aggregates, all);
  return all.filter(({ aggregate }) => aggregate !== own);
}

/** The merged tables of states that were asked for before: a table never changes once it was given out. */
const merges = new WeakMap<
  ReadonlyMap<string, OperatorQuarantine>,
  {
    readonly everywhere: ReadonlyMap<string, OperatorQuarantine>;
    readonly merged: ReadonlyMap<string, OperatorQuarantine>;
  }
>();

function mergeQuarantines(
  here: ReadonlyMap<string, OperatorQuarantine>,
  everywhere: ReadonlyMap<string, OperatorQuarantine>,
): ReadonlyMap<string, OperatorQuarantine> {
  if (everywhere.size === 0) return here;
  const known = merges.get(here);
  if (known?.everywhere === everywhere) return known.merged;
  const merged = new Map(here);
  for (const [serverId, quarantine] of everywhere) {
    const own = merged.get(serverId);
    if (own === undefined || own.sequence < quarantine.sequence) merged.set(serverId, quarantine);
  }
  merges.set(here, { everywhere, merged });
  return merged;
}

function first(a: UnreadableFact | undefined, b: UnreadableFact | undefined): UnreadableFact | null {
  if (a === undefined || b === undefined) return a ?? b ?? null;
  return a.sequence < b.sequence ? a : b;
}
