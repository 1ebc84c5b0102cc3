/** `npm run simulate:bugs`: plants each bug and counts the seeds until the simulation finds it. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, getPriority, setPriority } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Bug, bugs, evidence } from './bugs.ts';
import { type Found, readTable, withTable } from './bugTable.ts';

const HELP = `Plant each bug of test/simulation/bugs.ts and count the seeds until the simulation finds it.

  --only TEXT       bugs whose name contains this
  --from N          number of the first bug (1)
  --count M         number of bugs (all)
  --missing         only bugs that README.md does not call found
  --quick           hunt only what README.md says is found within 2 seeds, each with at most 20 seeds
  --jobs N          bugs hunted at once, each with low priority (one for each processor)
  --seed N          first seed (1)
  --seeds N         most seeds for each bug (200)
  --days N          simulated days of each seed (0.125)
  --hosts N         hosts (10)
  --vms N           VMs (60)
  --trouble X       how often faults come, relative to their usual rates (4)
  --save            write what was found into the table of test/simulation/README.md
  --first           end a run at its first breach: less to run, and the other rules that it would break are not seen
  --json            print each result as JSON

Exit 1 when a bug is not found.
`;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string', default: '1' },
    days: { type: 'string', default: '0.125' },
    hosts: { type: 'string', default: '10' },
    vms: { type: 'string', default: '60' },
    trouble: { type: 'string', default: '4' },
    only: { type: 'string' },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '1000' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    quick: { type: 'boolean', default: false },
    missing: { type: 'boolean', default: false },
    first: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}

const README = join(import.meta.dirname, 'README.md');
/** A later change may move the finding seed by a few: that must not fail a quick hunt. */
const QUICK_SEEDS = 20;
const QUICKLY_FOUND = 2;

/** When the first breach came, as the table states it. */
function firstBreach(out: string): string | null {
  const { day, hour, minute } = /^BREACH \S+ \(day (?<day>\d+) (?<hour>\d\d):(?<minute>\d\d):/m.exec(out)?.groups ?? {};
  return day === undefined ? null : `${24 * Number(day) + Number(hour)}:${minute}`;
}

const firstSeed = ({ from = 1 }: Bug): number => Math.max(from, Number(values.seed));

/** The options of a bug's runs. */
function sizeOf({ cells, inventory = 'api', numa = 'none', aggregates = 1 }: Bug): string[] {
  if (cells === true) return ['--cells', '--days', values.days];
  const { days, hosts, vms, trouble } = values;
  const options = { days, hosts, vms, trouble, inventory, numa, aggregates };
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

function hunt(wanted: Bug, seeds: string): Promise<Found> {
  const { name: bug } = wanted;
  const first = firstSeed(wanted);
  return new Promise((resolve, reject) => {
    const args = [join(import.meta.dirname, 'main.ts'), '--bug', bug, '--seed', String(first), '--seeds', seeds];
    const size = sizeOf(wanted);
    const child = spawn(process.execPath, [...args, ...size, '--until-breach', ...(values.first ? [] : ['--go-on'])], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (child.pid !== undefined) setPriority(child.pid, Math.max(10, getPriority()));
    let out = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    child.on('error', reject);
    child.on('close', (code) => {
      const rules = [...new Set([...out.matchAll(/^BREACH (\S+)/gm)].map((match) => match[1] ?? ''))];
      const finished = out.match(/^seed /gm)?.length ?? 0;
      // A run that ends with an error shows the bug, too: no service of a run without bugs does that to it.
      if (rules.length === 0 && code !== 0) {
        const last = errors.trimEnd().split('\n').slice(-12).join('\n');
        process.stderr.write(`${bug}: the run ended with an error\n${last}\n`);
        resolve({ bug, seed: first + finished, tried: finished + 1, after: null, rules: ['error'] });
      } else {
        const seed = rules.length === 0 ? null : first + finished - 1;
        resolve({ bug, seed, tried: finished, after: firstBreach(out), rules });
      }
    });
  });
}

const known = new Map(readTable(readFileSync(README, 'utf8')).map((found) => [found.bug, found]));
const easy = ({ name }: Bug): boolean => {
  const found = known.get(name);
  return found !== undefined && found.seed !== null && found.tried <= QUICKLY_FOUND;
};
/** Where seeds were run before that did not find it, a hunt with those after them goes on. */
function together(bug: Bug, before: Found | undefined, now: Found): Found {
  const goesOn = before?.seed === null && before.tried + (bug.from ?? 1) === firstSeed(bug);
  return goesOn ? { ...now, tried: before.tried + now.tried } : now;
}
const seeds = values.seeds ?? String(values.quick ? QUICK_SEEDS : 200);
const first = Number(values.from) - 1;
const named = bugs
  .slice(first, first + Number(values.count))
  .filter(({ name }) => values.only === undefined || name.includes(values.only));
const wanted = named.filter(
  (bug) =>
    bug.unseen === undefined && (!values.quick || easy(bug)) && (!values.missing || known.get(bug.name)?.seed == null),
);
const line = (name: string, text: string): string => `${name.padEnd(56)} ${text}\n`;

/** Cheapest first: what few seeds found before. */
function costOf({ name }: Bug): number {
  const found = known.get(name);
  return found === undefined || found.seed === null ? Number.POSITIVE_INFINITY : found.tried;
}
const queue = wanted.toSorted((a, b) => costOf(a) - costOf(b) || 0);
let missed = 0;
async function work(): Promise<void> {
  for (let bug = queue.shift(); bug !== undefined; bug = queue.shift()) {
    const found = await hunt(bug, seeds);
    if (found.seed === null) missed++;
    const text =
      found.seed === null
        ? `NOT FOUND in ${found.tried} seeds`
        : `found by ${found.rules.map((rule) => `"${rule}"`).join(', ')} with seed ${found.seed} after ${found.after ?? 'an error'}`;
    process.stdout.write(values.json ? `${JSON.stringify(found)}\n` : line(bug.name, text));
    known.set(bug.name, together(bug, known.get(bug.name), found));
    if (values.save) writeFileSync(README, withTable(readFileSync(README, 'utf8'), [...known.values()]));
  }
}
await Promise.all(Array.from({ length: Math.max(1, Number(values.jobs)) }, work));
if (!values.json)
  for (const { name, unseen } of named)
    if (unseen !== undefined)
      process.stdout.write(line(name, `not hunted: ${unseen.why}; ${evidence(unseen)} shows it`));
process.stdout.write(`${wanted.length - missed} of ${wanted.length} bugs found\n`);
process.exit(missed === 0 && wanted.length > 0 ? 0 : 1);
