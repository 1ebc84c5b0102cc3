export { type Advice, advise, type NovaSettings, type PastMove } from './advise.ts';
export { allocationReadings } from './allocation.ts';
export { type Fit, fit, type Headroom, headroom, shapesOf } from './capacity.ts';
export type { Cluster } from './cluster.ts';
export {
  type ClusterFile,
  clusterOf,
  type PlanClusterOptions,
  type PlannedCluster,
  parseClusterFile,
  planCluster,
  planParsed,
} from './clusterFile.ts';
export { checkMove } from './constraints.ts';
export { cycleBudget, type DecideInput, decide } from './decide.ts';
export { decideCapacity } from './decideCapacity.ts';
export { decideCells } from './decideCells.ts';
export { type HostPreview, previewDrain } from './drainPreview.ts';
export { type Explanation, explain } from './explain.ts';
export type { ByPolicy, DestinationVerdict } from './explanation.ts';
export * from './memory.ts';
export { type Assumed, observe } from './observe.ts';
export { meaningOf, type ReasonCode } from './reasons.ts';
export { score } from './scoring.ts';
export { plannerVersion } from './version.ts';
