export * from './approval.ts';
export * from './breaker.ts';
export * from './caps.ts';
export * from './cooldown.ts';
export * from './drain.ts';
export * from './quarantine.ts';
export * from './threshold.ts';
export * from './window.ts';
