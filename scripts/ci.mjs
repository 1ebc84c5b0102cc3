#!/usr/bin/env node
// Runs the stages of .ci/run, and with --nightly those of .ci/nightly. A stage is one check, or a run whose tests are counted one
// by one.
//   node scripts/ci.mjs [--nightly] [STAGE ...]     only those stages
import { rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { cells, check, MINUTE, out, script, tests } from './stage.mjs';

/** Stages one after the other, and stages side by side; each of them can hold the other. */
const inOrder = (...steps) => ({ steps });
const sideBySide = (...branches) => ({ branches });
/** A branch whose processes run behind those of the others. */
const behind = (nice, plan) => ({ ...plan, nice });

// `npm test` fills the machine: beside it, tests on OpenStack take three times as long, and it takes twice. The others wait for
// clouds, leases and builds, and share the machine well. The last branch is the shortest: it stands behind the others.
const install = check('install', script('node', '--version'));
const goToolsOf = (...names) => script('node', 'scripts/goTools.ts', ...names);
const goTools = check('go tools', goToolsOf(), 25);
const each = inOrder(
  install,
  sideBySide(tests('test', ['test'], 50), behind(19, check('openstack bed', ['test/openstack/bed', 'install'], 25))),
  sideBySide(
    tests('openstack', ['openstack'], 45),
    inOrder(
      goTools,
      tests('nats command', ['vitest', 'run', 'test/replay/natsCli'], 20),
      tests('containers', ['containers'], 40),
    ),
    behind(
      5,
      inOrder(
        check('lint', ['npm', 'run', '--silent', 'lint']),
        check('typecheck', script('node', 'node_modules/typescript/bin/tsc', '--noEmit')),
        check('knip', script('node', 'node_modules/knip/bin/knip.js', '--no-progress')),
        cells('faults', ['--cells', 'sample', '--workers', '4'], 30),
        tests('cluster', ['cluster'], 20),
        tests('recovery', ['recovery'], 35),
      ),
    ),
  ),
);

/** The nightly run tries other cases every time. */
const PROPERTY_SEED = String(Date.now() % 2 ** 31);
const WEEK = ['--aggregates', '3', '--hosts', '40', '--vms', '600'];

/** The series of nats-server between the oldest and the newest, which `npm test` runs on. */
const SERIES = ['2.10', '2.11', '2.12', '2.14'];
const CACHE = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
const onSeries = (series) => [
  check(`build of nats-server ${series}`, goToolsOf(`nats-server-${series}`), 25),
  tests(`nats-server ${series}`, ['vitest', 'run', 'libs/eventlog', 'test/e2e/demo'], 30, {
    KRONOS_NIGHTLY: '1',
    KRONOS_NATS_SERVER: join(CACHE, `kronos/gobin/nats-server-${series}`),
  }),
];

/** Stages that take hours: the sizes at which `npm test` and the stages above only sample. */
const nightly = inOrder(
  install,
  sideBySide(
    inOrder(
      tests('properties', ['vitest', 'run', 'test/property'], 180, { PROPERTY_RUNS: '3000', PROPERTY_SEED }),
      tests('unit tests with another seed', ['vitest', 'run', '.unit.test.ts'], 60, { PROPERTY_SEED }),
    ),
    check('bound', script('node', 'test/property/fuzzBound.ts', '--clusters', '6000'), 180),
  ),
  sideBySide(
    check('simulation', script('trial', 'test/simulation/main.ts', '--seeds', '10', '--days', '7', ...WEEK), 240),
    inOrder(
      check(
        'simulated moves between cells',
        script('trial', 'test/simulation/main.ts', '--cells', '--seeds', '20', '--days', '0.5'),
        120,
      ),
      check(
        'simulation with kept inventories',
        script('trial', 'test/simulation/main.ts', '--seeds', '20', '--days', '0.5', '--inventory', 'drawn'),
        120,
      ),
      check(
        'simulation with NUMA cells',
        script('trial', 'test/simulation/main.ts', '--seeds', '20', '--days', '0.5', '--numa', 'drawn'),
        120,
      ),
    ),
    check('planted bugs', script('trial', 'test/simulation/bugsMain.ts'), 240),
  ),
  cells('faults', ['--cells', 'all', '--workers', '4'], 60),
  check('build of nsc', goToolsOf('nsc'), 25),
  tests('cluster', ['cluster'], 40, { KRONOS_NIGHTLY: '1' }),
  tests('upgrades', ['vitest', 'run', 'test/upgrade'], 60, { KRONOS_NIGHTLY: '1' }),
  tests('older nats-server', ['vitest', 'run', 'libs/eventlog'], 30, { KRONOS_NIGHTLY: '1' }),
  ...SERIES.flatMap(onSeries),
  check('build of Jaeger', goToolsOf('jaeger'), 70),
  tests('observability', ['vitest', 'run', 'test/deploy/traces', 'test/deploy/faults', 'test/deploy/dashboards'], 60, {
    KRONOS_NIGHTLY: '1',
  }),
  goTools,
  tests('chart and release', ['containers', 'test/deploy'], 60, { KRONOS_NIGHTLY: '1' }),
  check('build of Kubernetes', goToolsOf('kubernetes'), 70),
  tests('release', ['installs'], 90, { KRONOS_NIGHTLY: '1' }),
  check('openstack bed', ['test/openstack/bed', 'install'], 25),
  tests('openstack', ['openstack'], 80, { KRONOS_NIGHTLY: '1' }),
  check('mutations', script('trial', 'test/mutations/run.ts'), 240),
  check('quality', script('node', 'test/bench/quality.ts'), 120),
);

const isNightly = process.argv[2] === '--nightly';
const plan = isNightly ? nightly : each;
const wanted = process.argv.slice(isNightly ? 3 : 2);
const stagesOf = ({ steps, branches, ...stage }) => (steps ?? branches)?.flatMap(stagesOf) ?? [stage];
const names = stagesOf(plan).map((stage) => stage.name);
const unknown = wanted.filter((w) => !names.includes(w));
if (unknown.length > 0) {
  console.error(`ci: no stage ${unknown.join(', ')}; there are ${names.join(', ')}`);
  process.exit(2);
}

let passed = 0;
let failed = 0;
const summary = [];
const failures = [];
const running = new Map();

async function runStage(stage, nice) {
  console.log(`ci: ${stage.name} starts`);
  const started = Date.now();
  running.set(stage.name, started);
  const result = await stage.run(nice);
  running.delete(stage.name);
  console.log(`\n=== ${stage.name}\n${result.output}`);
  // A stage counts as one check beside the tests that it ran, so that a crash without a failed test is still a failure.
  passed += result.passed + (result.ok ? 1 : 0);
  failed += result.failed + (result.ok ? 0 : 1);
  failures.push(...(result.failures ?? []));
  const counts = result.passed + result.failed > 0 ? `, ${result.passed} passed, ${result.failed} failed` : '';
  summary.push(
    `${result.ok ? 'ok  ' : 'FAIL'} ${stage.name} (${seconds(started)} s, ${Math.round(result.cpuSeconds)} s of CPU${counts})`,
  );
}

async function runPlan(plan, behindBy = 0) {
  const { nice = behindBy } = plan;
  if (plan.branches) await Promise.all(plan.branches.map((branch) => runPlan(branch, nice)));
  else if (plan.steps) for (const step of plan.steps) await runPlan(step, nice);
  else if (wanted.length === 0 || wanted.includes(plan.name)) await runStage(plan, nice);
}

const seconds = (since) => Math.round((Date.now() - since) / 1000);
const progress = setInterval(() => {
  if (running.size === 0) return;
  console.log(`ci: running ${[...running].map(([name, since]) => `${name} (${seconds(since)} s)`).join(', ')}`);
}, MINUTE);

const began = Date.now();
await runPlan(plan);
clearInterval(progress);
rmSync(out, { recursive: true, force: true });
console.log(`\n${summary.join('\n')}\n${seconds(began)} s in all`);
for (const failure of failures) console.log(`failed: ${failure}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
