export { type Clock, systemClock } from '@kronos/clock';
