export * from './memory.ts';
