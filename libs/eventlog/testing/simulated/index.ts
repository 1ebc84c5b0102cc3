export { type Fate, type Path, SimulatedConnection } from './connection.ts';
export { SimulatedServer } from './server.ts';
export type { StoredMessage } from './stream.ts';
