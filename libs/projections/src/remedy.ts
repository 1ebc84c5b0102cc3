import type { SkippedFact, UnreadableFact } from './state.ts';

/** What makes the aggregate plannable again, as an imperative. */
export const remedyOf = ({ remedy, sequence, through, claimedType, claimedVersion }: UnreadableFact): string => {
  const range = sequence === through ? `${sequence}` : `${sequence}-${through}`;
  return remedy === 'upgrade'
    ? `Install a version of Kronos that reads ${claimedType} version ${claimedVersion ?? '?'}, readers first`
    : `No version can read it: run kronos log skip ${range} --reason TEXT as the NATS user custodian`;
};

/** What was skipped, by whom and why. */
export const skipText = ({ events, by, comment }: SkippedFact): string =>
  `${events.map(({ sequence, through }) => (sequence === through ? sequence : `${sequence}-${through}`)).join(', ')} by ${by}${comment === null ? '' : `: ${comment}`}`;
