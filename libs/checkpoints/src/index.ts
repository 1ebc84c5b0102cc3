export * from './checkpoint.ts';
export * from './fold.ts';
