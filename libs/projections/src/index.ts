export { pauseInForce } from '@kronos/rules';
export { approvalOf, causeOf, notAfterMs, undispatched, waitingPlan } from './approvals.ts';
export { brokenHosts, hostBroken } from './breaker.ts';
export { comparisons, hostsToMeasure, type Predicted, type PredictionsOff, predictionsOff } from './calibration.ts';
export { lateResizes, openCellPlans, proposedCellPlans } from './cells.ts';
export {
  anchorOf,
  type CheckpointPart,
  canonicalState,
  FOLD_VERSION,
  fromParts,
  type Json,
  toParts,
} from './checkpoint.ts';
export { optionsOf, type PlannerRight, recordedOptions, rightOf } from './configuration.ts';
export { cooldownFacts, cooldownOf, coolingDown } from './cooldown.ts';
export { type CourseLeft, courseLeft, movesToGo } from './course.ts';
export { forgetHour } from './decisions.ts';
export { drainingHosts, drainLeft, drainRuleFacts, openDrain } from './drains.ts';
export { newestOf, timesOf, withRelated } from './elsewhere.ts';
export { createFolder, type Folder, fold, folding } from './evolve.ts';
export {
  type Contradiction,
  carriedMark,
  contradiction,
  describeContradiction,
  type Installation,
  inForce,
  installationAt,
  type LogIdentity,
  SETTLE_MS,
  STATEMENT_REMEDY,
  type Witness,
} from './identity.ts';
export { inFlight, inFlightElsewhere, taskStatus } from './inFlight.ts';
export {
  type Moment,
  type MomentFacts,
  momentAt,
  momentText,
  type PlanRun,
  PlanRuns,
  runEndMs,
  worstOf,
} from './moment.ts';
export {
  copyRate,
  estimatedDuration,
  expectedDuration,
  movePaces,
  pacesOfAll,
  planTime,
  stepTime,
  timeTogether,
} from './pace.ts';
export { startable, waitsSeconds, windowClosed } from './plans.ts';
export { wasProposed } from './proposals.ts';
export { absence, quarantined, quarantineFacts, quarantineTable, type VmQuarantine } from './quarantine.ts';
export { newRefusals, refusalsOf } from './refusals.ts';
export { remedyOf, skipText } from './remedy.ts';
export { type Cooldowns, emptyCooldowns, readCooldowns, seed } from './seed.ts';
export {
  type AllCaps,
  type AttemptToStart,
  capOf,
  exceeded,
  mayStart,
  type Places,
  type Slots,
  slots,
} from './slots.ts';
export {
  type AggregateFacts,
  type AggregateState,
  type Asked,
  aggregateState,
  type CellSlot,
  type DamagedMove,
  type DrainFacts,
  type FinishedDrain,
  type FinishedPlan,
  initialLogState,
  type LogState,
  MAX_DRAINS,
  type PlanFacts,
  RECENT_DRAINS,
  type SettleAct,
  type StepFacts,
  type TaskFacts,
  type UnreadableFact,
} from './state.ts';
