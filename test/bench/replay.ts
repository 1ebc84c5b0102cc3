/**
 * What it costs to run a month again: `kronos replay` and a what-if over a recorded directory of 43,200 cycles of one
 * aggregate, each as a command of its own. The month is made by the planner's own cycle with failures, people's commands and
 * the planner's default work limit. Prints JSON. With KRONOS_BENCH_RECORDINGS the recording is kept in that directory and used
 * again: delete it when the planner's code has changed.
 *
 *   npm run bench:replay [cycles, default 43200] [VMs, default 36] [threads, default: one per core]
 *
 * `cpuSeconds` is what the machine's load does not change; `quietSeconds` estimates from it how long two cores take that do
 * nothing else: a verification shares its work between them, a what-if of one aggregate does not.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { canonicalJson, defaultEngineOptions } from '@kronos/contracts';
import { plannerVersion } from '@kronos/placement';
import { createRecording } from '@kronos/replay';
import { operation } from '@kronos/replay/testing';

const cycles = Number(process.argv[2] ?? 43_200);
const vms = Number(process.argv[3] ?? 36);
const threads = Number(process.argv[4] ?? availableParallelism());
const CORES = 2;
const SEED = 15;
/** Of a month of 43,200 cycles, in seconds: for 36 VMs or fewer, and for up to 1,000. */
const LIMITS = vms <= 36 ? { verify: 180, whatIf: 360 } : { verify: 900, whatIf: 1800 };
const MONTH = 43_200;
const AGGREGATE = 'gpu';

const main = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));
const usage = new URL('./usage.ts', import.meta.url).href;
const scratch = mkdtempSync(join(tmpdir(), 'kronos-bench-'));
/** Where recordings are made; each takes some 27 KB (36 VMs) to 570 KB (1,000 VMs) a cycle. */
const root = process.env.KRONOS_BENCH_RECORDINGS ?? scratch;

/** The recorded month: made unless it is there. */
async function month(): Promise<string> {
  const directory = join(root, `${vms}-vms-${cycles}-cycles-planner-${plannerVersion}`);
  if (existsSync(join(directory, 'manifest.jsonl'))) return directory;
  rmSync(directory, { recursive: true, force: true });
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

type Measured = {
  readonly status: number | null;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
  readonly out: string;
};

/** Runs `kronos` and measures the process with all of its threads. */
async function kronos(args: readonly string[]): Promise<Measured> {
  const file = join(scratch, 'usage.json');
  const began = performance.now();
  const child = spawn(process.execPath, ['--import', usage, main, ...args], {
    env: { ...process.env, KRONOS_BENCH_USAGE: file },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const seconds = (performance.now() - began) / 1000;
  const { cpuMs, peakMb } = JSON.parse(readFileSync(file, 'utf8'));
  return { status, seconds, cpuSeconds: cpuMs / 1000, peakMb, out };
}

const round = (value: number): number => Math.round(value * 10) / 10;

/** @param cores that the work is shared between */
function figures({ status, seconds, cpuSeconds, peakMb }: Measured, cores: number, limit: number) {
  const quiet = cpuSeconds / cores;
  return {
    status,
    seconds: round(seconds),
    cpuSeconds: round(cpuSeconds),
    cpuMsPerCycle: round((cpuSeconds * 1000) / cycles),
    quietSeconds: round(quiet),
    quietSecondsOfMonth: round((quiet * MONTH) / cycles),
    limitOfMonth: limit,
    peakMb: Math.round(peakMb),
  };
}

const began = process.cpuUsage();
const directory = await month();
const { user, system } = process.cpuUsage(began);
const asked = ['--threads', String(threads)];
const verified = await kronos(['replay', directory, ...asked]);
const simulated = await kronos(['replay', directory, ...asked, '--set', 'engine.cooldown=300']);
rmSync(scratch, { recursive: true });
const verify = figures(verified, Math.min(threads, CORES), LIMITS.verify);
const whatIf = figures(simulated, 1, LIMITS.whatIf);
const ok =
  verified.status === 0 &&
  simulated.status === 0 &&
  verified.out.includes('Every decision is identical.') &&
  verify.quietSecondsOfMonth <= LIMITS.verify &&
  whatIf.quietSecondsOfMonth <= LIMITS.whatIf;
console.log(
  canonicalJson({
    cycles,
    vms,
    threads,
    generatedCpuSeconds: round((user + system) / 1e6),
    verify,
    whatIf,
    ok,
  }),
);
if (!ok) process.exitCode = 1;
