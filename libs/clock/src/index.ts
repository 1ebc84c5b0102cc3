export * from './clock.ts';
export * from './skew.ts';
export * from './turns.ts';
