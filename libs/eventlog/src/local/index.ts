/** A nats-server of one's own, for the demo and for tests: on free ports, with a store of its own, it touches no other server. */
export { capabilitiesOf } from '../wire/capabilities.ts';
export { findNatsServer, onPath } from './find.ts';
export { userKey } from './keys.ts';
export { freePorts } from './ports.ts';
export { startNatsServer } from './server.ts';
