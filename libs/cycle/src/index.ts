export * from './cells.ts';
export * from './cycle.ts';
export * from './drains.ts';
export * from './events.ts';
export * from './memory.ts';
export * from './requests.ts';
