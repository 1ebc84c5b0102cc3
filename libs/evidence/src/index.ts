export * from './errors.ts';
export { readEvidence } from './format.ts';
export { makeEvidence } from './make.ts';
export { snapshotsIn, withRecordingOf } from './open.ts';
export { publicKeyIn } from './sign.ts';
