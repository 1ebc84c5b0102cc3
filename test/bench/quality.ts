import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { planCluster } from '@kronos/placement';
import { z } from 'zod';
import { smallCluster, smallKinds } from './instances.ts';
import { Kept } from './kept.ts';
import { optimum } from './optimum.ts';

/**
 * Search and greedy beside the optimum that HiGHS proves, on small seeded clusters. The moves of an optimum have an order in which each
 * fits, as those of a plan do. Prints JSON.
 *
 *   node test/bench/quality.ts [--seeds 18] [--time-limit 10] [--kinds 5x20,10x50] [--optima FILE]
 *
 * `optima.jsonl` keeps the proofs, which take long: only the planner runs anew. An entry is used only for the same cluster, and one
 * without a proof only if that proof had as much time. `--optima ''` proves everything anew. Exits with 1 when fewer than 99 of 100 plans are
 * optimal, when the mean excess is .02 % or more, or when the search found no plan where one gains.
 */
const optimumSchema = z.strictObject({
  proven: z.boolean(),
  combined: z.number(),
  seconds: z.number(),
  /** The seconds that the proof was given. */
  limit: z.number(),
});
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '18' },
    'time-limit': { type: 'string', default: '10' },
    kinds: { type: 'string', default: smallKinds.map((kind) => kind.name).join(',') },
    optima: { type: 'string', default: fileURLToPath(new URL('./optima.jsonl', import.meta.url)) },
  },
});

const limit = Number(values['time-limit']);
const optima = new Kept(values.optima === '' ? undefined : values.optima, optimumSchema);
const budgets = [3, 5];
const wanted = new Set(values.kinds.split(','));

type Row = {
  kind: string;
  seed: number;
  budget: number;
  before: number;
  optimum: number;
  search: number;
  moves: number;
  greedy: number;
  ms: number;
};
const rows: Row[] = [];
let unproven = 0;
for (const kind of smallKinds) {
  if (!wanted.has(kind.name)) continue;
  for (let seed = 1; seed <= Number(values.seeds); seed++)
    for (const budget of budgets) {
      const file = smallCluster(kind, seed);
      const restrictToAz = kind.zones === 'restricted';
      const digest = createHash('sha256').update(JSON.stringify(file)).digest('hex').slice(0, 12);
      const name = `${kind.name} seed ${seed} (${digest}), ${budget} moves`;
      const prove = async () => ({ ...(await optimum(file, budget, limit, { restrictToAz, ordered: true })), limit });
      const best = await optima.get(name, prove, (kept) => kept.proven || kept.limit >= limit);
      if (!best.proven) {
        unproven++;
        continue;
      }
      const started = performance.now();
      const search = planCluster(file, { maxMigrations: budget, restrictToAz, planner: 'search' });
      const ms = performance.now() - started;
      const greedy = planCluster(file, { maxMigrations: budget, restrictToAz, planner: 'greedy' });
      rows.push({
        kind: kind.name,
        seed,
        budget,
        before: search.before.combined,
        optimum: best.combined,
        search: search.after.combined,
        moves: search.moves.length,
        greedy: greedy.after.combined,
        ms,
      });
    }
}

/** The share by which a value exceeds the optimum. Above an optimum of 0 it is 1. */
const excess = (value: number, best: number): number => (best > 1e-9 ? value / best - 1 : value > 1e-6 ? 1 : 0);

function summary(of: readonly Row[], which: 'search' | 'greedy') {
  const all = of.map((row) => Math.max(0, excess(row[which], row.optimum)));
  return {
    optimal: all.filter((x) => x < 1e-6).length / all.length,
    meanExcess: all.reduce((a, b) => a + b, 0) / all.length,
    worstExcess: Math.max(...all),
  };
}

/** The cluster has an acceptable plan that gains, and the search made none. */
const givenUp = rows.filter((row) => row.moves === 0 && row.optimum < row.before - 1e-6).length;
const missed = rows.filter((row) => excess(row.search, row.optimum) >= 1e-6);

const kinds = [...new Set(rows.map((row) => row.kind))].map((kind) => {
  const of = rows.filter((row) => row.kind === kind);
  const times = of.map((row) => row.ms).sort((a, b) => a - b);
  return {
    kind,
    instances: of.length,
    search: summary(of, 'search'),
    greedy: summary(of, 'greedy'),
    medianMs: times[Math.floor(times.length / 2)],
    worstMs: times.at(-1),
  };
});
console.log(
  JSON.stringify(
    {
      bench: 'quality',
      instances: rows.length,
      unproven,
      givenUp,
      search: summary(rows, 'search'),
      greedy: summary(rows, 'greedy'),
      kinds,
      missed,
    },
    null,
    2,
  ),
);
const { optimal, meanExcess } = summary(rows, 'search');
if (optimal < 0.99 || meanExcess >= 0.0002 || givenUp > 0) process.exitCode = 1;
