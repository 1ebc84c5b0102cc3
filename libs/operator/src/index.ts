export { type Following, followCommands, type Giving, giveCommand, type Told } from './act.ts';
export { aggregateOfDrain, aggregateOfTask, choosePlan, requireClosable } from './ask.ts';
export { type Asking, control } from './control.ts';
export { ClockWrong, CommandRefused } from './errors.ts';
export { outcomeOf } from './outcome.ts';
export { knownAggregates } from './scope.ts';
