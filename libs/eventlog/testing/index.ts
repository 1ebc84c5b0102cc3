/** Servers for tests and for the demo. They run on free ports with stores of their own and touch no other server. */
export { cacheDir, intoCache } from '../src/local/cache.ts';
export { unpackDebian, unpackNewerDebian, withLibraries } from '../src/local/debian.ts';
export * from '../src/local/find.ts';
export * from '../src/local/ports.ts';
export * from '../src/local/server.ts';
export { appendAll, appendEvents } from './appendAll.ts';
export * from './cluster.ts';
export { commandEvent, emptySnapshot, reportedEvent } from './messages.ts';
export * from './stored.ts';
