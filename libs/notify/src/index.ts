export * from './alarms.ts';
export * from './match.ts';
export * from './notice.ts';
export * from './request.ts';
export * from './retry.ts';
export * from './send.ts';
