/**
 * Scenarios that others wrote for their solvers, planned by Kronos and judged by their own expectations. The files are read where they are;
 * none of them belongs to Kronos. Each plan is replayed step by step. Prints JSON; ends with 1 when a step is unsafe.
 *
 *   npm run bench:foreign -- --proxlb DIR
 *
 * DIR is `scenarios` of github.com/credativ/proxlb-solver, with `*.yaml` in folders. A scenario that has an absolute gate (`*_threshold`) has
 * no counterpart here: a policy of Kronos compares hosts.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type PlannedCluster, planCluster } from '@kronos/placement';
import { parse } from 'yaml';
import { breaches, clusterFileOf, type Places, refuses, type Scenario } from './proxlb.ts';

const { proxlb } = parseArgs({ options: { proxlb: { type: 'string' } } }).values;
if (proxlb === undefined) throw new Error('give the folder of the scenarios: npm run bench:foreign -- --proxlb DIR');

/** The result of one scenario. */
type Verdict = {
  readonly verdict: 'met' | 'missed' | 'infeasible, answered' | 'infeasible, not answered' | 'no counterpart';
  readonly why: readonly string[];
  readonly moves: number;
  readonly unsafe: readonly string[];
};

/** The steps that their rules forbid at their time, and the placement at the end. */
function replayed(scenario: Scenario, { moves }: PlannedCluster): { readonly unsafe: string[]; readonly end: Places } {
  const places = new Map(Object.entries(scenario.vms ?? {}).map(([id, { node }]) => [id, node]));
  const unsafe: string[] = [];
  for (const { step, vm, to } of moves) {
    places.set(vm, to);
    if (refuses(scenario, places, vm)) unsafe.push(`step ${step}: ${vm} to ${to}`);
  }
  return { unsafe, end: places };
}

const saysWhy = ({ stuck, warnings }: PlannedCluster): boolean => stuck.length + warnings.length > 0;

/** The expectations that a plan does not meet. */
function misses({ expect = {}, ...scenario }: Scenario, plan: PlannedCluster, end: Places): string[] {
  const { constraints_satisfied: kept = true, max_migrations: most, placements = {}, node_empty: empty } = expect;
  const found = kept ? breaches(scenario, end) : [];
  if (most !== undefined && plan.moves.length > most) found.push(`${plan.moves.length} moves instead of ${most}`);
  for (const [id, wanted] of Object.entries(placements)) {
    // `== OTHER`: the host of another guest.
    const [, other] = /^== (.+)$/.exec(String(wanted)) ?? [];
    const node = other === undefined ? String(wanted) : end.get(other);
    if (end.get(id) !== node) found.push(`${id} is on ${end.get(id)} instead of ${node}`);
  }
  if (empty !== undefined && end.values().some((node) => node === empty)) found.push(`${empty} is not empty`);
  if (expect.spread_improved === true && plan.after.combined >= plan.before.combined)
    found.push('the spread is as before');
  return found;
}

function judged(scenario: Scenario): Verdict {
  const { expect = {}, balancing = {} } = scenario;
  const plan = planCluster(clusterFileOf(scenario), {
    ...{ maxMigrations: Object.keys(scenario.vms ?? {}).length * 2, moveOverheadGib: 0 },
    ...{ evacuateDisabledHosts: true, enforceHardAffinity: true, allowParking: true },
  });
  const { unsafe, end } = replayed(scenario, plan);
  const of = { moves: plan.moves.length, unsafe };
  const noPath = expect.path_feasible === false && breaches(scenario, end).length > 0;
  if (expect.feasible === false || noPath) {
    const verdict = saysWhy(plan) ? 'infeasible, answered' : 'infeasible, not answered';
    return {
      ...of,
      verdict,
      why: [...plan.stuck.map(({ reason }) => reason), ...plan.warnings].map(({ text }) => text),
    };
  }
  if (Object.keys(balancing).some((name) => name.endsWith('_threshold')))
    return { ...of, verdict: 'no counterpart', why: [] };
  const why = misses(scenario, plan, end);
  return { ...of, verdict: why.length === 0 ? 'met' : 'missed', why };
}

const files = readdirSync(proxlb, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.yaml'));
const scenarios = files.sort().map((file) => ({
  scenario: file,
  ...judged(parse(readFileSync(join(proxlb, file), 'utf8')) as Scenario),
}));
const figures = {
  scenarios: scenarios.length,
  moves: scenarios.reduce((all, { moves }) => all + moves, 0),
  unsafe: scenarios.filter(({ unsafe }) => unsafe.length > 0).length,
  ...Object.fromEntries(
    [...Map.groupBy(scenarios, ({ verdict }) => verdict)].map(([verdict, of]) => [verdict, of.length]),
  ),
};
process.stdout.write(`${JSON.stringify({ figures, scenarios }, null, 2)}\n`);
if (figures.unsafe > 0) process.exitCode = 1;
