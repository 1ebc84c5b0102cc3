import { parseArgs } from 'node:util';
import { PACE_COVERAGE } from '@kronos/rules';
import { type Coverage, run, scenarios } from './pace/run.ts';

/**
 * How often a live migration takes as long as its interval says, over simulated months: the share of moves within the interval that
 * the folded log gave when each began, by what it was learnt from. Prints JSON, and fails where it is outside 0.85 to 0.95 for any scenario.
 *
 *   node test/bench/pace.ts [--days 30] [--seeds 20]
 */
const { values } = parseArgs({
  options: { days: { type: 'string', default: '30' }, seeds: { type: 'string', default: '20' } },
});
const days = Number(values.days);
const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => i + 1);

const share = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((1000 * part) / whole) / 1000;

const rows = scenarios.map((scenario) => {
  const months = seeds.map((seed) => run(scenario, seed, days));
  const sum = (of: (month: Coverage) => number): number => months.reduce((n, month) => n + of(month), 0);
  const of = (scope: keyof Coverage['of']) => ({
    moves: sum((month) => month.of[scope].moves),
    covered: share(
      sum((month) => month.of[scope].within),
      sum((month) => month.of[scope].moves),
    ),
  });
  const moves = sum((month) => month.moves);
  return {
    scenario: scenario.name,
    moves,
    unknown: sum((month) => month.unknown),
    covered: share(
      sum((month) => month.within),
      moves,
    ),
    ofPair: of('pair'),
    ofAggregate: of('aggregate'),
    plansCovered: share(
      sum((month) => month.plansWithin),
      sum((month) => month.plans),
    ),
    meanHighByLow: share(
      sum((month) => month.widths),
      moves,
    ),
  };
});
const ok = rows.every(({ covered }) => covered !== null && covered >= 0.85 && covered <= 0.95);
console.log(JSON.stringify({ nominal: PACE_COVERAGE, days, seeds: seeds.length, rows, ok }, null, 2));
if (!ok) process.exitCode = 1;
