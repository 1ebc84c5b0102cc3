export * from './checkpoint.ts';
export * from './fold.ts';
export * from './guard.ts';
export * from './identity.ts';
export * from './nameLog.ts';
export * from './verification.ts';
