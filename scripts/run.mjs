#!/usr/bin/env node
// Entry of the npm scripts. Plain JavaScript that any Node from 20 on runs: installs the dependencies when they are
// missing or older than the lock file, then goes on with the bundled Node 24.
//
//   node scripts/run.mjs demo [--keep] [--seed N]       the demonstration
//   node scripts/run.mjs test [vitest arguments]        unit, integration and end-to-end tests
//   node scripts/run.mjs openstack [vitest arguments]   the tests against a real OpenStack (root; Debian or Ubuntu)
//   node scripts/run.mjs recovery [vitest arguments]    the tests of installations that lose a part of themselves
//   node scripts/run.mjs cluster [vitest arguments]     the tests with three NATS servers
//   node scripts/run.mjs console [vitest arguments]     the tests of the console in a Chromium (Debian or Ubuntu)
//   node scripts/run.mjs containers [vitest arguments]  the tests with containers (root; Debian or Ubuntu)
//   node scripts/run.mjs installs [vitest arguments]    the files of a release, installed on systems of their own (root; Debian or Ubuntu)
//   node scripts/run.mjs release DIRECTORY              what a release consists of: docs/releasing.md
//   node scripts/run.mjs generate                       generated schemas, samples and documents
//   node scripts/run.mjs trial FILE [arguments]         a long test that is no test of vitest: faults, simulation
//   node scripts/run.mjs vitest|node [arguments]        that program under the bundled Node
//
// A test run fails when it leaves a process or a directory behind.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledNode } from './bundledNode.mjs';
import { watchRun } from './leftovers.mjs';
import { startCloud } from './openstack.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = join(root, 'node_modules', '.bin');

const cannotRun = (command, error) => {
  console.error(`kronos: cannot run ${command}: ${error.message}`);
  process.exit(1);
};
/** Runs it in place of this process: signals go to it, and `end` gets its exit code. */
const run = (command, args, env, end = (code) => process.exit(code)) => {
  const child = spawn(command, args, { cwd: root, stdio: 'inherit', env });
  // Ctrl-C at a terminal reaches both by itself.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => (signal === 'SIGINT' && process.stdin.isTTY) || child.kill(signal));
  child.on('error', (error) => cannotRun(command, error));
  child.on('exit', (code) => end(code ?? 1));
};

const [task = '', ...args] = process.argv.slice(2);

const modules = join(root, 'node_modules');
const installed = join(modules, '.package-lock.json');
const stale = !existsSync(installed) || statSync(installed).mtimeMs < statSync(join(root, 'package-lock.json')).mtimeMs;
const hasTools = existsSync(join(modules, 'vitest'));
/** The demonstration needs no tool of the developers. They are half of all packages, and come when another task needs them. */
const needsTools = task !== 'demo' || hasTools;
if (stale || (needsTools && !hasTools)) {
  console.error('kronos: installing dependencies (npm ci) ...');
  const omitted = needsTools ? [] : ['--omit=dev'];
  const { error, status } = spawnSync('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error', ...omitted], {
    cwd: root,
    stdio: 'inherit',
  });
  if (error) cannotRun('npm', error);
  if (status !== 0) process.exit(status ?? 1);
}

const node = bundledNode(root) ?? process.execPath;
const version = spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout?.trim() ?? '';
if (Number.parseInt(version, 10) < 24) {
  console.error(
    `kronos: Node 24 is needed, and ${node} is ${version || 'not runnable'}. The bundled one comes as an npm package for ` +
      'linux (x64, arm64) and darwin; elsewhere install Node 24 and run this again.',
  );
  process.exit(1);
}

const env = { ...process.env, PATH: [dirname(node), bin, process.env.PATH ?? ''].join(delimiter) };
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
/** Runs tests, and `after` them; ends, removes and names each process and directory that they left behind, and fails when there is one. */
const test = (command, after = async () => undefined) => {
  const watched = watchRun(env);
  run(node, command, watched.env, async (code) => {
    await after();
    const left = await watched.leftovers();
    for (const each of left) console.error(`kronos: the tests left ${each}`);
    process.exit(code === 0 && left.length > 0 ? 1 : code);
  });
};
const suite = (name, after) => test([vitest, 'run', '-c', `test/${name}/vitest.config.ts`, ...args], after);
/** Uses the cloud that is up, and leaves it so; else starts one and ends it afterwards. */
const openstack = async () => {
  const cloud = await startCloud(root);
  if (typeof cloud === 'string') {
    console.error(`kronos: the tests against a real OpenStack did not run: ${cloud}`);
    process.exit(1);
  }
  suite('openstack', cloud.end);
};
const tasks = {
  demo: () => run(node, ['libs/cli/src/main.ts', 'demo', ...args], env),
  test: () => test([vitest, 'run', ...args]),
  openstack,
  recovery: () => suite('recovery'),
  cluster: () => suite('cluster'),
  console: () => suite('console'),
  containers: () => suite('containers'),
  installs: () => suite('release'),
  release: () => run(node, ['scripts/release.ts', ...args], env),
  generate: () => run(node, ['scripts/generate.ts'], env),
  trial: () => test(args),
  vitest: () => test([vitest, ...args]),
  node: () => run(node, args, env),
};
const chosen = tasks[task];
if (chosen === undefined) {
  console.error(`kronos: no task ${JSON.stringify(task)}; there are ${Object.keys(tasks).join(', ')}`);
  process.exit(2);
}
chosen();
