import { type Party, parties } from './parties.ts';
import { drainReasons, releaseReasons, snapshotReasons, waitReasons } from './serviceReasons.ts';
import { taskReasonCodes, taskReasons } from './taskReasons.ts';

/** The files of this package that are generated from its code, by their path in the repository. */
export const factsFiles = (): [path: string, text: string][] => [['libs/facts/docs/reasons.md', reasonsDocument()]];

const NEXT = {
  destination: 'the next alternate at once',
  infrastructure: 'the same destination later',
  none: 'none',
} as const;

function reasonsDocument(): string {
  const yes = (value: boolean): string => (value ? 'yes' : 'no');
  const ofParties = (Object.keys(parties) as Party[]).map((party) => {
    const { meaning, quarantines, chargesHost, remembered } = parties[party];
    return `| \`${party}\` | ${meaning} | ${yes(quarantines)} | ${yes(chargesHost)} | ${yes(remembered)} |`;
  });
  const ofReasons = taskReasonCodes.map((code) => {
    const { party, fault, meaning } = taskReasons[code];
    return `| \`${code}\` | ${meaning} | ${party} | ${NEXT[fault]} |`;
  });
  return `# Reasons of tasks

Generated from libs/facts/src (\`npm run generate\`). The reasons of the planner are in libs/placement/docs/reasons.md.

## Parties at fault

| party | meaning | quarantines the VM | counts for the host's breaker | refusal is remembered |
|---|---|---|---|---|
${ofParties.join('\n')}

## Reasons

| code | meaning | party at fault | next attempt |
|---|---|---|---|
${ofReasons.join('\n')}

## Waits before the start

${meanings(waitReasons)}

## Hosts that stay disabled after a drain

${meanings(drainReasons)}

## Snapshots that are not decided

In the logs of the planner, and as \`reason\` of \`kronos_snapshots_not_decided_total\`.

${meanings(snapshotReasons)}

## Ends of the work on a task

In the logs of the executor.

${meanings(releaseReasons)}
`;
}

const meanings = (reasons: Readonly<Record<string, string>>): string =>
  [
    '| code | meaning |',
    '|---|---|',
    ...Object.entries(reasons).map(([code, text]) => `| \`${code}\` | ${text} |`),
  ].join('\n');
