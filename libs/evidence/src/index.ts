export * from './errors.ts';
export { type Evidence, type Manifest, readEvidence } from './format.ts';
export { type Made, MOST_BYTES, makeEvidence } from './make.ts';
export { snapshotsIn, withRecordingOf } from './open.ts';
export { isSigned, publicKeyIn } from './sign.ts';
