/** The entry of the script of times: those that a person types, and that of moves together. Pure. */
export { EXAMPLES, OFTEN, typedTime } from '@kronos/contracts/typedTime';
export { timeTogether } from '@kronos/projections';
