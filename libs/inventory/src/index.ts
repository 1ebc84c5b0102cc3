export * from './inventory.ts';
export * from './reports.ts';
