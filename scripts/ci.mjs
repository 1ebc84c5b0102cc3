#!/usr/bin/env node
// The stages of .ci/run, and with --nightly those of .ci/nightly. A stage is one check, or a run whose tests are counted one
// by one.
//   node scripts/ci.mjs [--nightly] [STAGE ...]     only those stages
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = mkdtempSync(join(tmpdir(), 'kronos-ci-'));
const MINUTE = 60_000;

/** Begins the last line of a stage's output: the user and system time of all its processes that were waited for, in seconds. */
const CPU_LINE = 'ci: CPU';

/**
 * Runs a command with its output in a file: a pipe would be held open by what a killed command started, and stages that run
 * side by side must not mix their lines. The command leads a process group, so that its time limit ends everything it started.
 * `nice`: 0, or how far it stands behind others when the machine is busy, up to 19. Where Linux shares the CPU among sessions
 * (autogroups) and not among processes, the session has to stand behind.
 */
function run(name, [command, ...args], minutes, nice) {
  const path = join(out, `${name.replaceAll(' ', '-')}.log`);
  const file = openSync(path, 'w');
  return new Promise((resolve) => {
    const stand = `{ echo ${nice} > /proc/self/autogroup; } 2>/dev/null || true`;
    const timed = ['bash', '-c', `${stand}; TIMEFORMAT='${CPU_LINE} %U %S'; time "$@"`, name, command, ...args];
    const child = spawn('nice', ['-n', String(nice), ...timed], {
      cwd: root,
      stdio: ['ignore', file, file],
      detached: true,
    });
    const limit = setTimeout(() => {
      console.error(`ci: ${name} was not over after ${minutes} minutes and is killed`);
      process.kill(-child.pid, 'SIGKILL');
    }, minutes * MINUTE);
    const end = (ok) => {
      clearTimeout(limit);
      closeSync(file);
      const [output, cpu = ''] = readFileSync(path, 'utf8').split(`${CPU_LINE} `);
      const cpuSeconds = cpu.split(' ').reduce((sum, part) => sum + Number(part), 0);
      resolve({ ok, output: output.trimEnd(), cpuSeconds });
    };
    child.on('error', (error) => {
      console.error(`ci: ${name}: ${error.message}`);
      end(false);
    });
    child.on('exit', (code) => end(code === 0));
  });
}

const script = (...args) => [process.execPath, 'scripts/run.mjs', ...args];

const check = (name, command, minutes = 10) => ({
  name,
  run: async (nice) => ({ passed: 0, failed: 0, ...(await run(name, command, minutes, nice)) }),
});

/** Lines of a message that say why: a call that timed out names what it waited for in its call log. */
const WHY_LINES = 5;

/** One line for each test or file that failed: where, why, and the line of the test that says so. */
function failuresOf(files) {
  const line = (where, why = '', file = '') => {
    const lines = stripVTControlCharacters(why)
      .split('\n')
      .map((one) => one.trim())
      .filter((one) => one !== '');
    const stack = lines.findIndex((one) => one.startsWith('at '));
    const message = stack < 0 ? lines : lines.slice(0, stack);
    const own = lines.find((one) => file !== '' && one.startsWith('at ') && one.includes(file));
    return [`${where}:`, message.slice(0, WHY_LINES).join(' · ').slice(0, 1000), own ?? ''].join(' ').trim();
  };
  return files.flatMap(({ name, message, assertionResults }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    if (failed.length === 0) return message ? [line(file, message)] : [];
    return failed.map(({ fullName, failureMessages }) => line(`${file} > ${fullName}`, failureMessages[0], file));
  });
}

const tests = (name, [task, ...args], minutes, env = {}) => ({
  name,
  run: async (nice) => {
    const report = join(out, `${name}.json`);
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const set = Object.entries(env).map(([key, value]) => `${key}=${value}`);
    const command = ['env', ...set, ...script(task, ...args, ...reporters)];
    const { ok, output, cpuSeconds } = await run(name, command, minutes, nice);
    try {
      const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
      const failures = failuresOf(testResults);
      if (numPassedTests + numFailedTests === 0) {
        // A run that skips all of its tests proves nothing.
        const why = `ci: ${name} ran no test`;
        return { passed: 0, failed: 0, ok: false, output: `${output}\n${why}`, cpuSeconds, failures };
      }
      return { passed: numPassedTests, failed: numFailedTests, ok, output, cpuSeconds, failures };
    } catch (error) {
      const why = `ci: ${name} left no report: ${error.message}`;
      return { passed: 0, failed: 0, ok: false, output: `${output}\n${why}`, cpuSeconds };
    }
  },
});

/** The fault matrix counts cells and reports them in its last line. */
const cells = (name, args, minutes) => ({
  name,
  run: async (nice) => {
    const { ok, output, cpuSeconds } = await run(name, script('trial', 'test/faults/run.ts', ...args), minutes, nice);
    try {
      const { cells, failed } = JSON.parse(output.split('\n').at(-1));
      const failures = output.split('\n').filter((line) => line.includes(': BROKEN: '));
      return { passed: cells - failed, failed, ok, output, cpuSeconds, failures };
    } catch {
      return { passed: 0, failed: 0, ok: false, output: `${output}\nci: ${name} did not reach its end`, cpuSeconds };
    }
  },
});

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
