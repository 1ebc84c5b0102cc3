export { type Following, followCommands, foresee, type Giving, giveCommand, type Told } from './act.ts';
export { aggregateOfDrain, choosePlan, eventsToSkip, requireUnblocked } from './ask.ts';
export { askedDrain, commandTypes, type TaskCommand, taskCommand } from './commands.ts';
export { type Asking, control } from './control.ts';
export { nextRunAct, progressOf, progressText, type RunHost, runHostOf } from './drainRun.ts';
export { ClockWrong, CommandRefused } from './errors.ts';
export { addressedPlan, addressedTask, hasFailures } from './outcome.ts';
export { knownAggregates, requireCells } from './scope.ts';
