export * from './errors.ts';
export type { BacktestFigures, ComparedMove, PolicyFigures } from './figures.ts';
export type { FormerMove, Segment, ServerLife } from './lives.ts';
export { isFinished, readPast } from './read.ts';
export { runBacktest } from './run.ts';
export { type Parameters, stepCount } from './sources.ts';
export { openSteps, type Steps } from './steps.ts';
export { writeRecording } from './write.ts';
