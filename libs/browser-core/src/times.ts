/** The entry of the script of times: those that a person types, that of moves together, and what happened at one. Pure. */
export { EXAMPLES, OFTEN, typedTime } from '@kronos/contracts/typedTime';
export { momentAt, momentText, runEndMs, timeTogether, worstOf } from '@kronos/projections';
