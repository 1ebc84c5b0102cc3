export { causeOfText } from './novaRefusals.ts';
export { consequencesOf, type Party } from './parties.ts';
export { livePowerState, powerStateName } from './powerState.ts';
export { evacuationIsOver, groupIsWhole } from './reasonGone.ts';
export { markOf, REFUSAL_KEPT_MS, refusalHolds, shapeOf } from './refusals.ts';
export { type Fault, type TaskReasonCode, taskReasonOf, taskReasons } from './taskReasons.ts';
