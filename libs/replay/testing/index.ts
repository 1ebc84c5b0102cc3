/** Histories for tests: kept in memory, and a simulated operation that writes one. */
export * from './memory.ts';
export * from './operation.ts';
