/** The statements of a backtest's report, for the terminal and for the page alike. Pure. */
import type { BacktestFigures } from '@kronos/backtest';
import { count } from '@kronos/contracts/words';
import { figure } from '../numbers.ts';
import { codesText, type Line } from '../report/lines.ts';
import { span } from '../times.ts';

export const backtestHeads = [
  'policy',
  'threshold',
  'mean was',
  'would be',
  'above was',
  'would be',
  'hottest host was',
  'would be',
];

export const backtestRows = ({ policies }: BacktestFigures): string[][] =>
  policies.map(({ policy, threshold, was, would }) => [
    policy,
    figure(threshold),
    figure(was.mean),
    figure(would.mean),
    span(was.aboveMs),
    span(would.aboveMs),
    figure(was.peak),
    figure(would.peak),
  ]);

/** Gaps in the history, in words; the keys are those of the snapshots. */
const UNKNOWN: Readonly<Record<string, string>> = {
  serversWithoutHost: 'servers whose host is not known, left out',
  serversWithoutActions: 'servers whose actions could not be read: their states are taken as today',
  flavors: 'servers whose flavor then is not known, taken as today and not moved',
  hostsWithoutValues: 'hosts without any value, taken as down',
  vmSeriesWithoutServer: 'series of VMs that Nova does not know any more, left out',
  queriesWithoutAnswer: 'queries about hosts without a whole answer: their policies took no part',
};

export function backtestLines(of: BacktestFigures): Line[] {
  const { moves, pace, people, emptyHosts, combined } = of;
  const lines: Line[] = [
    {
      label: 'Tested',
      text: `${count(of.steps, 'step')} of ${span(of.stepMs)}; a policy took part in ${of.judged} of them`,
    },
    {
      label: 'Combined imbalance',
      text: `mean ${figure(combined.was)} as it was, ${figure(combined.would)} with Kronos`,
    },
    {
      label: 'Kronos would move',
      text: `${count(moves.count, 'VM')} in ${count(moves.plans, 'plan')}: ${figure(moves.gib, 1)} GiB of memory and local disks, ${moves.copyingMs === null ? 'copying time not known: there is no former live migration to learn the pace from' : `${span(moves.copyingMs)} of copying at the median pace of ${count(pace.moves, 'former live migration')}`}`,
    },
    {
      label: 'Gain gone within an hour',
      text: `${moves.goneWithinAnHour} of ${count(moves.count, 'move')}`,
    },
    {
      label: 'Empty hosts',
      text: `at most ${emptyHosts.was.most} as it was, ${emptyHosts.would.most} with Kronos; mean ${figure(emptyHosts.was.mean, 1)} and ${figure(emptyHosts.would.mean, 1)}`,
    },
    {
      label: 'Moves by people',
      text:
        people.moves === 0
          ? 'none'
          : `${people.moves}: within a day Kronos would move the same VM to the same host in ${people.sameDestination}, to another in ${people.otherDestination}, not at all in ${people.notMoved}; ${people.notJudged} are of a kind or time that it does not judge`,
    },
  ];
  if (Object.keys(of.withoutPlan).length > 0)
    lines.push({ label: 'Steps without a plan', text: codesText(of.withoutPlan) });
  for (const [name, { steps, most }] of Object.entries(of.unknown))
    lines.push({
      label: 'Not known',
      text: `${UNKNOWN[name] ?? name}: at most ${most} at a time, at ${count(steps, 'step')}`,
    });
  return lines;
}

export const NOTES = [
  'Assumption: the load of a server does not depend on its host.',
  'Hosts, their capacity, aggregates, server groups, names, tags and locks are as of the reading: Nova keeps no history of them.',
  'A plan is carried out at once and in full, and its moves change the load of the steps that follow.',
];
