import { parseArgs } from 'node:util';
import { run, variants } from './stability/run.ts';
import { scenarios } from './stability/world.ts';

/**
 * How restless the planners are: moves a day, moves taken back within an hour and cycles above a threshold, over days of simulated
 * load, without the first six hours. The pure core alone, a cycle a minute. Prints JSON.
 *
 *   node test/bench/stability.ts [--days 1] [--seeds 3] [--hosts 8] [--vms-per-host 8] [--scenario TEXT]
 */
const { values } = parseArgs({
  options: {
    days: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '3' },
    hosts: { type: 'string', default: '8' },
    'vms-per-host': { type: 'string', default: '8' },
    scenario: { type: 'string', default: '' },
  },
});
const days = Number(values.days);
const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => i + 1);
const size = { hosts: Number(values.hosts), vmsPerHost: Number(values['vms-per-host']) };

const rows = scenarios
  .filter(({ name }) => name.includes(values.scenario))
  .flatMap((scenario) =>
    variants.map((variant) => {
      const cpuBefore = process.cpuUsage();
      const outcomes = seeds.map((seed) => run({ scenario, variant, seed, days, size }));
      const cpu = process.cpuUsage(cpuBefore);
      const measured = outcomes.reduce((total, { cycles }) => total + cycles, 0) / 1440;
      const sum = (of: (outcome: (typeof outcomes)[number]) => number): number =>
        outcomes.reduce((total, outcome) => total + of(outcome), 0);
      return {
        scenario: scenario.name,
        planner: variant.name,
        movesPerDay: round(sum(({ moves }) => moves) / measured),
        takenBackPerDay: round(sum(({ takenBack }) => takenBack) / measured),
        shareOfCyclesAbove: round(sum(({ above }) => above) / (measured * 1440)),
        cpuSeconds: round((cpu.user + cpu.system) / 1e6),
      };
    }),
  );
console.log(JSON.stringify({ days, seeds: seeds.length, ...size, rows }, null, 2));

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
