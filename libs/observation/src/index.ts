export { assemble, hostNamesOf, vmNamesOf } from './assemble.ts';
export type { Fetched, KnownServer, ObserveOptions } from './cloud.ts';
export { CapacityReader, type Part } from './collect.ts';
export { createLimiter } from './limit.ts';
export { type Duration, type Observation, observe, type Piece } from './observe.ts';
export { type Answer, type MatchedAnswers, matchAnswers, type QueryUse } from './readings.ts';
export { some } from './reasons.ts';
export { indexServers, knownAfter, stillKnown } from './servers.ts';
export { hostsOf } from './topology.ts';
