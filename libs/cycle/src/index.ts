export * from './cycle.ts';
export * from './events.ts';
export * from './requests.ts';
