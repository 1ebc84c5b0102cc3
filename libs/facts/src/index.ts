export { causeOfText } from './novaRefusals.ts';
export { consequencesOf, type Party, parties } from './parties.ts';
export { livePowerState, powerStateName } from './powerState.ts';
export { evacuationIsOver, groupIsWhole } from './reasonGone.ts';
export { markOf, REFUSAL_KEPT_MS, type Refusal, refusalHolds, shapeOf } from './refusals.ts';
export { type Fault, type TaskReasonCode, taskReasonCodes, taskReasonOf, taskReasons } from './taskReasons.ts';
