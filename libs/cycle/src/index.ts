export * from './cycle.ts';
export * from './events.ts';
