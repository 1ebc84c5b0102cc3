export { type Device, deviceOfClaim, deviceOfImage, deviceOfPort, deviceOfSpec, tiedToHost } from './devices.ts';
export { groupIsWhole, groupVerdict } from './groups.ts';
export { isServing, isUp, serviceOf, serviceText } from './hosts.ts';
export { causeOfText } from './novaRefusals.ts';
export { consequencesOf, type Party } from './parties.ts';
export { livePowerState, powerStateName } from './powerState.ts';
export { evacuationIsOver, repairIsOver } from './reasonGone.ts';
export { markOf, REFUSAL_KEPT_MS, refusalHolds, shapeOf } from './refusals.ts';
export { remedyOfReason } from './remedies.ts';
export type {
  DrainReasonCode,
  ReasonOf,
  ReleaseReasonCode,
  SnapshotReasonCode,
  WaitReasonCode,
} from './serviceReasons.ts';
export { sharedReasons } from './sharedReasons.ts';
export { type Fault, type TaskReasonCode, taskCodeOf, taskReasonOf, taskReasons } from './taskReasons.ts';
export { cpuFits, cpuTraits, traitsFit, traitsOf } from './traits.ts';
export { isGrantable, providerFits } from './units.ts';
