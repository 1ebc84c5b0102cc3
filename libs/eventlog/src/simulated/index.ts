export { type Fate, type Path, SimulatedConnection } from './connection.ts';
export { SimulatedServer, type SimulatedServerOptions } from './server.ts';
export type { StoredMessage, Stream } from './stream.ts';
