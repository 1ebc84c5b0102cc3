export { type Fit, fit, type Headroom, headroom, shapesOf } from './capacity/capacity.ts';
export { type DecideCapacityInput, decideCapacity } from './capacity/decideCapacity.ts';
export { type DecideCellsInput, decideCells } from './cells/decideCells.ts';
export type { Cluster } from './cluster/cluster.ts';
export { checkMove } from './cluster/constraints.ts';
export { type DecideInput, decide } from './decide.ts';
export { type Advice, advise, type LeakedAllocation, type NovaSettings, type PastMove } from './explain/advise.ts';
export { type HostPreview, previewDrain } from './explain/drainPreview.ts';
export { type Explanation, explain } from './explain/explain.ts';
export {
  type ByPolicy,
  type CycleExplanation,
  type DestinationVerdict,
  type HostExplanation,
  refusalText,
} from './explain/explanation.ts';
export { type Generation, generationsOf, generationText } from './explain/generations.ts';
export { observed, pictureOf, policyRanges, rounded, valueAfter, valuesOfHost } from './explain/picture.ts';
export {
  type ClusterFile,
  clusterOf,
  type PlanClusterOptions,
  type PlannedCluster,
  parseClusterFile,
  planCluster,
  planParsed,
} from './file/clusterFile.ts';
export { ClusterFileError } from './file/errors.ts';
export { proposalDecision } from './proposal.ts';
export { meaningOf, type ReasonCode } from './reasons.ts';
export { allocationReadings } from './snapshot/allocation.ts';
export * from './snapshot/memory.ts';
export { type Assumed, observe } from './snapshot/observe.ts';
export { profileSums } from './snapshot/profileSums.ts';
export { isCounted, score } from './snapshot/scoring.ts';
export { cycleBudget } from './state.ts';
export { plannerVersion } from './version.ts';
