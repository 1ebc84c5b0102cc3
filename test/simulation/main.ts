/** `npm run simulate -- --seed N --days 7`: one run of the simulation, or several seeds one after the other. */

import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type Asked, defaultAsked, inventoryModes, numaModes } from './asked.ts';
import type { Report } from './simulation.ts';

const HELP = `Run Kronos in a simulation: virtual time, faults and orders drawn from a seed.

  --seed N          first seed (1)
  --seeds N         number of seeds (1)
  --jobs N          seeds run at once (as many as there are cores); with --until-breach: 1
  --days N          simulated days, fractions allowed (1)
  --aggregates N    host aggregates (1)
  --hosts N         hosts (10)
  --vms N           VMs (60)
  --replicas N      replicas of each service (2)
  --interval N      seconds between evaluations (drawn)
  --trouble X       how often faults come, relative to their usual rates (drawn)
  --inventory MODE  how servers are read: api, changes, notifications, or drawn: by the seed (api)
  --numa MODE       NUMA cells of hosts: none, known, unknown (to Kronos), or drawn: by the seed (none)
  --beside COMMIT   services of another release, from Git, run first and are replaced there and back
  --faults LIST     run only these faults of the seed, by number, or "none"
  --shrink          find a small set of faults that still breaks the same rule
  --cells           moves between two cells instead of balancing; only --seed, --seeds, --jobs, --days, --bug and --log apply
  --bug NAME        plant this bug of test/simulation/bugs.ts
  --until-breach    with --seeds: stop after the first seed that finds a breach
  --go-on           do not stop at the first breach
  --log             print the services' log lines (--verbose: debug lines too)
  --json            print the report as JSON
`;

function refuse(problem: string): never {
  process.stderr.write(`simulate: ${problem}; --help lists the options\n`);
  process.exit(2);
}

const options = {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  days: { type: 'string' },
  aggregates: { type: 'string' },
  hosts: { type: 'string' },
  vms: { type: 'string' },
  replicas: { type: 'string' },
  interval: { type: 'string' },
  trouble: { type: 'string' },
  inventory: { type: 'string' },
  numa: { type: 'string' },
  beside: { type: 'string' },
  faults: { type: 'string' },
  shrink: { type: 'boolean' },
  'go-on': { type: 'boolean' },
  log: { type: 'boolean' },
  verbose: { type: 'boolean' },
  json: { type: 'boolean' },
  cells: { type: 'boolean' },
  bug: { type: 'string' },
  'until-breach': { type: 'boolean' },
  jobs: { type: 'string' },
  /** Set by the process that runs several seeds at once. */
  apart: { type: 'boolean' },
  help: { type: 'boolean' },
} as const;

function read() {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    // Node adds advice about arguments that begin with a dash. It does not apply: there are none.
    return refuse(
      error instanceof Error ? (/^.*?(?=\.?(?:\n| To specify|$))/.exec(error.message)?.[0] ?? '') : String(error),
    );
  }
}
const values = read();
if (values.help === true) {
  process.stdout.write(HELP);
  process.exit(0);
}

function number(
  name: 'seed' | 'seeds' | 'days' | 'aggregates' | 'hosts' | 'vms' | 'replicas' | 'interval' | 'trouble' | 'jobs',
  or: number,
): number {
  const text = values[name];
  if (text === undefined) return or;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) refuse(`--${name} ${text} is not a number above 0`);
  if (name !== 'days' && name !== 'trouble' && !Number.isInteger(value))
    refuse(`--${name} ${text} is not a whole number`);
  return value;
}

function faultsOf(text: string | undefined): ReadonlySet<number> | null {
  if (text === undefined) return null;
  if (text === 'none') return new Set();
  const numbers = text.split(',').map(Number);
  if (!numbers.every((each) => Number.isInteger(each) && each >= 0))
    refuse(`--faults ${text} is neither a list of numbers such as 12,40 nor "none"`);
  return new Set(numbers);
}

/** Null: drawn by the seed. */
function modeOf<T extends string>(option: 'inventory' | 'numa', modes: readonly T[], or: T | null): T | null {
  const text = values[option];
  if (text === undefined) return or;
  if (text === 'drawn') return null;
  return modes.find((mode) => mode === text) ?? refuse(`--${option} ${text} is none of ${modes.join(', ')} and drawn`);
}

// The modules under test are loaded after the bug is planted.
let withoutBug = (): readonly string[] => [];
if (values.bug !== undefined) {
  const { plant } = await import('./plant.ts');
  try {
    withoutBug = plant(values.bug);
  } catch (error) {
    const { errorText } = await import('@kronos/contracts');
    refuse(errorText(error));
  }
}
const { simulate } = await import('./simulation.ts');
const { simulateCells } = await import('./cells.ts');
const { EPOCH_MS } = await import('./world.ts');
if (withoutBug().length > 0)
  refuse(`${withoutBug().join(' and ')} was loaded before the bug was planted: import it after plant()`);

const asked: Asked = {
  seed: number('seed', defaultAsked.seed),
  days: number('days', defaultAsked.days),
  aggregates: number('aggregates', defaultAsked.aggregates),
  hosts: number('hosts', defaultAsked.hosts),
  vms: number('vms', defaultAsked.vms),
  replicas: number('replicas', defaultAsked.replicas),
  interval: values.interval === undefined ? null : number('interval', 1),
  trouble: values.trouble === undefined ? null : number('trouble', 1),
  inventory: modeOf('inventory', inventoryModes, defaultAsked.inventory),
  numa: modeOf('numa', numaModes, defaultAsked.numa),
  beside: values.beside ?? null,
  only: faultsOf(values.faults),
  verbose: values.verbose === true,
};

const when = (ms: number): string => {
  const seconds = (ms - EPOCH_MS) / 1000;
  const day = Math.floor(seconds / 86_400);
  return `day ${day} ${new Date(ms).toISOString().slice(11, 23)}`;
};
/** The command that runs the same again. */
function reproduce({ only, verbose: _, ...one }: Asked): string {
  const always = new Set(['seed', 'days', 'aggregates', 'hosts', 'vms', 'replicas']);
  const usual: Readonly<Record<string, unknown>> = { ...defaultAsked };
  const options = Object.entries(one).flatMap(([name, value]) =>
    always.has(name) || value !== usual[name] ? [`--${name} ${value ?? 'drawn'}`] : [],
  );
  if (only !== null) options.push(`--faults ${[...only].join(',') || 'none'}`);
  return `npm run simulate -- ${options.join(' ')}`;
}

/** The same run with as few faults as still break the same rule. */
async function shrink(report: Report): Promise<Asked> {
  const [first] = report.breaches;
  if (first === undefined) return report.asked;
  const base = report.asked;
  // A fault after the breach has no part in it. A breach of liveness is found at the end.
  let kept = report.faults.filter((fault) => EPOCH_MS + fault.atMs <= first.atMs).map((fault) => fault.number);
  const breaks = async (numbers: readonly number[]): Promise<boolean> => {
    const { breaches } = await simulate({ ...base, only: new Set(numbers) }, { stopAtBreach: true });
    return breaches.some(({ rule }) => rule === first.rule);
  };
  if (await breaks([])) return { ...base, only: new Set() };
  let parts = 2;
  while (kept.length > 1 && parts <= kept.length) {
    const size = Math.ceil(kept.length / parts);
    let smaller: number[] | null = null;
    for (let from = 0; from < kept.length && smaller === null; from += size) {
      const rest = [...kept.slice(0, from), ...kept.slice(from + size)];
      if (await breaks(rest)) smaller = rest;
    }
    if (smaller === null) {
      if (size === 1) break;
      parts = Math.min(kept.length, parts * 2);
    } else {
      kept = smaller;
      parts = Math.max(2, parts - 1);
      process.stderr.write(`  ${kept.length} faults still break ${first.rule}\n`);
    }
  }
  return { ...base, only: new Set(kept) };
}

const seeds = number('seeds', 1);

const onLine =
  values.log === true || values.verbose === true
    ? { onLine: (name: string, line: string) => process.stdout.write(`${name} ${line.trimEnd()}\n`) }
    : {};

/** Likewise of moves between cells. */
async function runCells(seed: number): Promise<boolean> {
  const { breaches, counts, digest } = await simulateCells({ seed, hours: asked.days * 24, ...onLine });
  for (const { rule, text, atMs } of breaches) process.stdout.write(`BREACH ${rule} (${when(atMs)}): ${text}\n`);
  const totals = Object.entries(counts).map(([name, value]) => `${name} ${value}`);
  process.stdout.write(
    `seed ${seed}: ${breaches.length} breaches, digest ${digest.slice(0, 16)}; ${totals.join(', ')}\n`,
  );
  if (breaches.length === 0) return true;
  process.stdout.write(`reproduce: npm run simulate -- --cells --seed ${seed} --days ${asked.days}\n`);
  return false;
}

/** Runs one seed; gives whether nothing was broken. */
async function run(seed: number): Promise<boolean> {
  if (values.cells === true) return await runCells(seed);
  const one = { ...asked, seed };
  const quiet = values.json === true || seeds > 1 || values.apart === true;
  const report = await simulate(one, {
    stopAtBreach: values['go-on'] !== true,
    onBreach: (breach) => process.stdout.write(`BREACH ${breach.rule} (${when(breach.atMs)}): ${breach.text}\n`),
    onProgress: (day, text) => {
      if (!quiet) process.stderr.write(`  day ${day.toFixed(2)}: ${text}\n`);
    },
    ...onLine,
  });
  if (values.json === true) process.stdout.write(`${JSON.stringify(report)}\n`);
  else {
    if (!quiet) {
      const drawn = Object.entries(report.drawn).map(([name, value]) => `${name}=${value}`);
      process.stdout.write(`options: ${drawn.join(' ')}\n`);
      process.stdout.write(`faults: ${report.faults.length}\n`);
      const counts = Object.entries(report.counts).map(([name, value]) => `${name} ${value}`);
      process.stdout.write(`totals: ${counts.join(', ')}; ${report.events} events\n`);
    }
    process.stdout.write(
      `seed ${seed}: ${report.breaches.length} breaches, ${report.messages} messages, digest ${report.digest.slice(0, 16)}, ${report.cpuSeconds.toFixed(1)} s CPU\n`,
    );
  }
  if (report.breaches.length === 0) return true;
  if (values['until-breach'] === true) return false;
  process.stdout.write(`reproduce: ${reproduce(one)}\n`);
  if (values.shrink === true) process.stdout.write(`shrunk: ${reproduce(await shrink(report))}\n`);
  return false;
}

/** Runs seeds in processes of their own, several at once; their output comes in the order of the seeds. */
async function runApart(jobs: number): Promise<number> {
  // The seeds find it there.
  if (asked.beside !== null) await (await import('../upgrade/checkout.ts')).checkOut(asked.beside);
  const others = process.argv.slice(2);
  let failed = 0;
  let next = asked.seed;
  let shown = asked.seed;
  const outputs = new Map<number, string>();
  const one = (seed: number): Promise<void> =>
    new Promise((resolve, reject) => {
      // The last one of an option counts.
      const args = [...others, '--seed', String(seed), '--seeds', '1', '--apart'];
      const child = fork(import.meta.filename, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
      let output = '';
      child.stdout?.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
      child.on('error', reject);
      child.on('close', (code) => {
        if (code !== 0) failed++;
        outputs.set(seed, code === 0 || code === 1 ? output : `${output}seed ${seed}: ended with ${code}\n`);
        for (let text = outputs.get(shown); text !== undefined; text = outputs.get(++shown)) {
          process.stdout.write(text);
          outputs.delete(shown);
        }
        resolve();
      });
    });
  const worker = async (): Promise<void> => {
    while (next < asked.seed + seeds) await one(next++);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return failed;
}

let failed = 0;
const jobs = Math.min(seeds, values['until-breach'] === true ? 1 : number('jobs', availableParallelism()));
if (jobs > 1) failed = await runApart(jobs);
else
  for (let seed = asked.seed; seed < asked.seed + seeds; seed++) {
    if (await run(seed)) continue;
    failed++;
    if (values['until-breach'] === true) break;
  }
process.exit(failed === 0 ? 0 : 1);
