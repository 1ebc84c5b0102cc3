import type { SkippedFact, UnreadableFact } from './state.ts';

/** The remedy that makes the aggregate plannable again, as an imperative. */
export const remedyOf = ({ remedy, sequence, through, claimedType, claimedVersion }: UnreadableFact): string => {
  const range = sequence === through ? `${sequence}` : `${sequence}-${through}`;
  return remedy === 'upgrade'
    ? `Install a version of Kronos that reads ${claimedType} version ${claimedVersion ?? '?'}, readers first`
    : `No version can read it: run kronos log skip ${range} --reason TEXT as the NATS user custodian`;
};

/** Names the skipped events, the person who skipped them, and the reason. */
export const skipText = ({ events, by, comment }: SkippedFact): string =>
  `${events.map(({ sequence, through }) => (sequence === through ? sequence : `${sequence}-${through}`)).join(', ')} by ${by}${comment === null ? '' : `: ${comment}`}`;
