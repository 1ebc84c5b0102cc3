/** `npm run simulate -- --seed N --days 7`: one run of the simulation, or several seeds one after the other. */
import { parseArgs } from 'node:util';
import { type Asked, defaultAsked } from './options.ts';
import type { Report } from './simulation.ts';

const HELP = `Run Kronos in a simulation: virtual time, faults and orders drawn from a seed.

  --seed N          first seed (1)
  --seeds N         number of seeds, one after the other (1)
  --days N          simulated days, fractions allowed (1)
  --aggregates N    host aggregates (1)
  --hosts N         hosts (10)
  --vms N           VMs (60)
  --replicas N      replicas of each service (2)
  --trouble X       how often faults come, relative to their usual rates (drawn)
  --faults LIST     run only these faults of the seed, by number, or "none"
  --shrink          find a small set of faults that still breaks the same rule
  --bug NAME        plant this bug of test/simulation/bugs.ts
  --until-breach    with --seeds: stop after the first seed that finds a breach
  --go-on           do not stop at the first breach
  --log             print the services' log lines (--verbose: debug lines too)
  --json            print the report as JSON
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    days: { type: 'string' },
    aggregates: { type: 'string' },
    hosts: { type: 'string' },
    vms: { type: 'string' },
    replicas: { type: 'string' },
    trouble: { type: 'string' },
    faults: { type: 'string' },
    shrink: { type: 'boolean' },
    'go-on': { type: 'boolean' },
    log: { type: 'boolean' },
    verbose: { type: 'boolean' },
    json: { type: 'boolean' },
    bug: { type: 'string' },
    'until-breach': { type: 'boolean' },
    help: { type: 'boolean' },
  },
});
if (values.help === true) {
  process.stdout.write(HELP);
  process.exit(0);
}

function number(
  name: 'seed' | 'seeds' | 'days' | 'aggregates' | 'hosts' | 'vms' | 'replicas' | 'trouble',
  or: number,
): number {
  const text = values[name];
  if (text === undefined) return or;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) {
    process.stderr.write(`simulate: --${name} ${text} is not a number above 0\n`);
    process.exit(2);
  }
  return value;
}

// The modules under test are loaded after the bug is planted.
if (values.bug !== undefined) (await import('./plant.ts')).plant(values.bug);
const { simulate } = await import('./simulation.ts');
const { EPOCH_MS } = await import('./world.ts');

const asked: Asked = {
  seed: number('seed', defaultAsked.seed),
  days: number('days', defaultAsked.days),
  aggregates: number('aggregates', defaultAsked.aggregates),
  hosts: number('hosts', defaultAsked.hosts),
  vms: number('vms', defaultAsked.vms),
  replicas: number('replicas', defaultAsked.replicas),
  trouble: values.trouble === undefined ? null : number('trouble', 1),
  only:
    values.faults === undefined
      ? null
      : new Set(values.faults === 'none' ? [] : values.faults.split(',').map((each) => Number(each))),
  verbose: values.verbose === true,
};

const when = (ms: number): string => {
  const seconds = (ms - EPOCH_MS) / 1000;
  const day = Math.floor(seconds / 86_400);
  return `day ${day} ${new Date(ms).toISOString().slice(11, 23)}`;
};
const reproduce = (one: Asked): string =>
  `npm run simulate -- --seed ${one.seed} --days ${one.days} --aggregates ${one.aggregates} --hosts ${one.hosts} --vms ${one.vms} --replicas ${one.replicas}${one.trouble === null ? '' : ` --trouble ${one.trouble}`}${one.only === null ? '' : ` --faults ${[...one.only].join(',') || 'none'}`}`;

/** The same run with as few faults as still break the same rule. */
async function shrink(report: Report): Promise<Asked> {
  const [first] = report.breaches;
  if (first === undefined) return report.asked;
  let kept = report.faults.filter((fault) => EPOCH_MS + fault.atMs <= first.atMs).map((fault) => fault.number);
  const days = Math.min(report.asked.days, (first.atMs - EPOCH_MS) / 86_400_000 + 0.01);
  const base = first.rule === 'liveness' ? report.asked : { ...report.asked, days: report.asked.days };
  void days;
  const breaks = async (numbers: readonly number[]): Promise<boolean> => {
    const { breaches } = await simulate({ ...base, only: new Set(numbers) }, { stopAtBreach: true });
    return breaches.some(({ rule }) => rule === first.rule);
  };
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

let failed = 0;
const seeds = number('seeds', 1);
for (let seed = asked.seed; seed < asked.seed + seeds; seed++) {
  const one = { ...asked, seed };
  const quiet = values.json === true || seeds > 1;
  const report = await simulate(one, {
    stopAtBreach: values['go-on'] !== true,
    onBreach: (breach) => process.stdout.write(`BREACH ${breach.rule} (${when(breach.atMs)}): ${breach.text}\n`),
    onProgress: (day, text) => {
      if (!quiet) process.stderr.write(`  day ${day.toFixed(2)}: ${text}\n`);
    },
    ...(values.log === true || values.verbose === true
      ? { onLine: (name: string, line: string) => process.stdout.write(`${name} ${line.trimEnd()}\n`) }
      : {}),
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
  if (report.breaches.length > 0) {
    failed++;
    if (values['until-breach'] === true) break;
    process.stdout.write(`reproduce: ${reproduce(one)}\n`);
    if (values.shrink === true) process.stdout.write(`shrunk: ${reproduce(await shrink(report))}\n`);
  }
}
process.exit(failed === 0 ? 0 : 1);
