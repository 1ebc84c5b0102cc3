#!/usr/bin/env node
// The stages of .ci/run. A stage is one check, or a run whose tests are counted one by one.
//   node scripts/ci.mjs [STAGE ...]     only those stages
import { spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = mkdtempSync(join(tmpdir(), 'kronos-ci-'));
const MINUTE = 60_000;

/** @param stdout where its output goes: a file, or inherit. A pipe would be held open by what a killed one started. */
const run = (args, minutes, stdout = 'inherit') => {
  const done = spawnSync(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', stdout, 'inherit'],
    timeout: minutes * MINUTE,
    killSignal: 'SIGKILL',
  });
  if (done.error) console.error(`ci: ${done.error.message}`);
  return done.status === 0;
};

const check = (name, args, minutes = 10) => ({ name, run: () => ({ passed: 0, failed: 0, ok: run(args, minutes) }) });

const tests = (name, task, minutes) => ({
  name,
  run: () => {
    const report = join(out, `${name}.json`);
    const ok = run(
      ['scripts/run.mjs', task, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
      minutes,
    );
    try {
      const { numPassedTests, numFailedTests, numTotalTests } = JSON.parse(readFileSync(report, 'utf8'));
      if (numTotalTests === 0) return { passed: 0, failed: 0, ok: false };
      return { passed: numPassedTests, failed: numFailedTests, ok };
    } catch (error) {
      console.error(`ci: ${name} left no report: ${error.message}`);
      return { passed: 0, failed: 0, ok: false };
    }
  },
});

/** The fault matrix counts cells, and says so in its last line. */
const cells = (name, args, minutes) => ({
  name,
  run: () => {
    const report = join(out, `${name}.txt`);
    const ok = run(['scripts/run.mjs', 'node', 'test/faults/run.ts', ...args], minutes, openSync(report, 'w'));
    const output = readFileSync(report, 'utf8').trimEnd();
    console.log(output);
    try {
      const { cells, failed } = JSON.parse(output.split('\n').at(-1));
      return { passed: cells - failed, failed, ok };
    } catch {
      console.error(`ci: ${name} did not come to its end`);
      return { passed: 0, failed: 0, ok: false };
    }
  },
});

const stages = [
  check('install', ['scripts/run.mjs', 'node', '--version']),
  check('lint', ['scripts/run.mjs', 'node', 'node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '.']),
  check('typecheck', ['scripts/run.mjs', 'node', 'node_modules/typescript/bin/tsc', '--noEmit']),
  check('nats command', ['scripts/natsCommand.mjs']),
  tests('test', 'test', 20),
  cells('faults', ['--cells', 'pairs', '--lanes', '4', '--again'], 14),
  tests('cluster', 'cluster', 15),
  tests('containers', 'containers', 20),
  tests('openstack', 'openstack', 25),
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((w) => !stages.some((s) => s.name === w));
if (unknown.length > 0) {
  console.error(`ci: no stage ${unknown.join(', ')}; there are ${stages.map((s) => s.name).join(', ')}`);
  process.exit(2);
}

let passed = 0;
let failed = 0;
const summary = [];
for (const stage of stages.filter((s) => wanted.length === 0 || wanted.includes(s.name))) {
  console.log(`\n=== ${stage.name}`);
  const started = Date.now();
  const result = stage.run();
  // A stage counts as one check beside the tests that it ran, so that a crash without a failed test is still a failure.
  passed += result.passed + (result.ok ? 1 : 0);
  failed += result.failed + (result.ok ? 0 : 1);
  const seconds = Math.round((Date.now() - started) / 1000);
  summary.push(
    `${result.ok ? 'ok  ' : 'FAIL'} ${stage.name} (${seconds} s${result.passed + result.failed > 0 ? `, ${result.passed} passed, ${result.failed} failed` : ''})`,
  );
}
rmSync(out, { recursive: true, force: true });
console.log(`\n${summary.join('\n')}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
