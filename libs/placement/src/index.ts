export { type AllocationInput, allocationReadings } from './allocation.ts';
export { buildCluster, type Cluster, type ClusterParts } from './cluster.ts';
export {
  type ClusterFile,
  clusterOf,
  type PlanClusterOptions,
  type PlannedCluster,
  type PlannedMove,
  parseClusterFile,
  planCluster,
  planParsed,
} from './clusterFile.ts';
export { checkMove, type Refusal } from './constraints.ts';
export { type DecideInput, decide, RULES_ONLY_BUDGET } from './decide.ts';
export { ClusterFileError } from './errors.ts';
export { type Explanation, explain } from './explain.ts';
export type {
  ByPolicy,
  CycleExplanation,
  DestinationVerdict,
  HostExplanation,
  PlanExplanation,
  StepExplanation,
  VmExplanation,
} from './explanation.ts';
export * from './memory.ts';
export { type Assumed, type Observed, observe } from './observe.ts';
export { type ReasonCode, reasonCodes, reasonMeanings } from './reasons.ts';
export { type ScoreInput, score } from './scoring.ts';
export { plannerVersion } from './version.ts';
