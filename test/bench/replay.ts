/**
 * The cost of a replay of recorded decisions, as multiples of the cost of making them: `kronos replay` and a what-if over a
 * recorded directory of one aggregate, a cycle a minute, each as a command of its own. The recording is made by the planner's own
 * cycle with failures, people's commands and the planner's default work limit. Prints JSON; exit status 1 where a ratio exceeds its
 * limit or a decision differs.
 *
 *   npm run bench:replay [cycles, default 1500] [VMs, default 36] [threads, default: one per core]
 *
 * Nearly all of the CPU is the search's: it looks for a lower cost until its work limit. `ratio` is the CPU of a command, its start
 * included, divided by the CPU that made the recording.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonicalJson, defaultEngineOptions } from '@kronos/contracts';
import { createRecording } from '@kronos/replay';
import { operation } from '@kronos/replay/testing';
import { cpuMs } from './cpuTime.ts';
import { type Measured, measuredKronos } from './measured.ts';

const cycles = Number(process.argv[2] ?? 1500);
const vms = Number(process.argv[3] ?? 36);
const threads = Number(process.argv[4] ?? availableParallelism());
const SEED = 15;
/** CPU of a command over the CPU of the decisions that it repeats. */
const MOST_RATIO = 1.5;
const AGGREGATE = 'gpu';

const scratch = mkdtempSync(join(tmpdir(), 'kronos-bench-'));

/** Records the cycles, some 27 KB (36 VMs) to 570 KB (1,000 VMs) each. */
async function recorded(): Promise<string> {
  const directory = join(scratch, 'recording');
  const hosts = Math.max(6, Math.round(vms / 28));
  const writer = await createRecording(directory);
  let since = '';
  let until = '';
  for (const { events, snapshots } of operation({
    seed: SEED,
    cycles,
    aggregates: [AGGREGATE],
    hosts,
    vmsPerHost: Math.round(vms / hosts),
    searchWorkLimit: defaultEngineOptions.searchWorkLimit,
    failures: 0.05,
    commands: 0.002,
  })) {
    for (const snapshot of snapshots) {
      since ||= snapshot.time;
      until = snapshot.time;
      await writer.snapshot(snapshot);
    }
    for (const stored of events) await writer.event(stored);
  }
  await writer.close({
    madeBy: 'bench',
    madeAt: until,
    anonymized: false,
    aggregates: [AGGREGATE],
    range: { since, until },
    options: { [AGGREGATE]: defaultEngineOptions },
  });
  return directory;
}

const kronos = (args: readonly string[]) => measuredKronos(args, join(scratch, 'usage.json'));

const round = (value: number): number => Math.round(value * 100) / 100;

const began = cpuMs();
const directory = await recorded();
const decidedCpuSeconds = (cpuMs() - began) / 1000;

function figures({ status, seconds, cpuSeconds, peakMb }: Measured) {
  return {
    status,
    seconds: round(seconds),
    cpuSeconds: round(cpuSeconds),
    ratio: round(cpuSeconds / decidedCpuSeconds),
    peakMb: Math.round(peakMb),
  };
}

const asked = ['--threads', String(threads)];
const verified = await kronos(['replay', directory, ...asked]);
const simulated = await kronos(['replay', directory, ...asked, '--set', 'engine.cooldown=300']);
rmSync(scratch, { recursive: true });
const verify = figures(verified);
const whatIf = figures(simulated);
const ok =
  verified.status === 0 &&
  simulated.status === 0 &&
  verified.out.includes('Every decision is identical.') &&
  Math.max(verify.ratio, whatIf.ratio) <= MOST_RATIO;
console.log(
  canonicalJson({
    cycles,
    vms,
    threads,
    decidedCpuSeconds: round(decidedCpuSeconds),
    verify,
    whatIf,
    limit: MOST_RATIO,
    ok,
  }),
);
if (!ok) process.exitCode = 1;
