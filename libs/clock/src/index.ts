export * from './clock.ts';
export * from './skew.ts';
