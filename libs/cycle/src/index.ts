export * from './cycle.ts';
export * from './drains.ts';
export * from './events.ts';
export * from './memory.ts';
export * from './proposals.ts';
export * from './requests.ts';
