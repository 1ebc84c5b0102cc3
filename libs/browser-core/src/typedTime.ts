/** The entry of the script that reads typed times. Pure. */
export { EXAMPLES, OFTEN, typedTime } from '@kronos/contracts/typedTime';
