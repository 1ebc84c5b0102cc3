/** Servers for tests and for the demo. They run on free ports with stores of their own and touch no other server. */
export * from './find.ts';
export { emptySnapshot } from './messages.ts';
export * from './server.ts';
export * from './stored.ts';
