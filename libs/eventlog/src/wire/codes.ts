/** JetStream's error codes that matter here (nats-server, server/errors.json). */
export const apiCodes = {
  clusterIncomplete: 10004,
  noSuitablePeers: 10005,
  clusterNotAvailable: 10008,
  clusterNotLeader: 10009,
  consumerNotFound: 10014,
  insufficientResources: 10023,
  memoryExceeded: 10028,
  storageExceeded: 10047,
  streamNotFound: 10059,
  wrongLastSequence: 10071,
  storeFailed: 10077,
  streamOffline: 10118,
  duplicateInProcess: 10158,
  wrongLastSequenceNotReady: 10163,
  /** Another append to the subject was in flight; the answer holds no number. */
  wrongLastSequenceInFlight: 10164,
  tooManyRequests: 10167,
} as const;

/** There is no room. */
export const fullCodes: readonly number[] = [
  apiCodes.storeFailed,
  apiCodes.insufficientResources,
  apiCodes.memoryExceeded,
  apiCodes.storageExceeded,
];

/** Ask again: it may be answered. */
export const transientCodes: readonly number[] = [
  apiCodes.clusterIncomplete,
  apiCodes.clusterNotAvailable,
  apiCodes.clusterNotLeader,
  apiCodes.streamOffline,
  apiCodes.duplicateInProcess,
  apiCodes.wrongLastSequenceNotReady,
  apiCodes.tooManyRequests,
];
