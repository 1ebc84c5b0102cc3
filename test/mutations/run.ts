// Mutations: small changes of the critical code, of which the tests must notice at least a recorded share.
//   node scripts/run.mjs trial test/mutations/run.ts [AREA ...] [--sample N | --all] [--seed N] [--record]
// Prints each mutant that no test noticed. Fails when an area is below its score in scores.json; --record writes the scores, with
// the commit that was measured.
import { execFileSync, spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseSync } from 'oxc-parser';
import { AREAS, type Area } from './areas.ts';
import { type Mutant, mutantsOf, sample } from './mutants.ts';
import { readScores, SCORES, type Score } from './scores.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const MINUTE = 60_000;

/** Whether these tests pass. A mutant that never ends is noticed, too: the limit is far beyond what the tests take. */
function pass(mutant: Mutant | null, tests: readonly string[], limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const args = [
      'node_modules/vitest/vitest.mjs',
      'run',
      '-c',
      'test/mutations/vitest.config.ts',
      '--reporter=dot',
      ...tests,
    ];
    // The tests are not at fault for files that a mutant leaves behind.
    const temporary = mkdtempSync(join(tmpdir(), 'kronos-mutant-'));
    const env = { ...process.env, TMPDIR: temporary, KRONOS_MUTANT: JSON.stringify(mutant) };
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: 'ignore', detached: true });
    const endAll = (): void => {
      try {
        process.kill(-(child.pid ?? 0), 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    };
    const limit = setTimeout(endAll, limitMs);
    child.on('exit', (code) => {
      clearTimeout(limit);
      endAll();
      rmSync(temporary, { recursive: true, force: true });
      resolve(code === 0);
    });
  });
}

const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

/** The commit that --record measures. @throws Error where files differ from it: nobody could measure them again */
function measuredCommit(): string {
  const changed = git('status', '--porcelain', '--', 'libs', 'services', 'test', ':!test/mutations/scores.json');
  if (changed !== '')
    throw new Error(`--record measures a commit, and these files differ from HEAD; commit them:\n${changed}`);
  return git('rev-parse', '--short=8', 'HEAD');
}

function filesOf({ files }: Area): string[] {
  const all = files.flatMap((each) =>
    statSync(join(root, each)).isDirectory() ? globSync(`${each}/**/*.ts`, { cwd: root }).sort() : [each],
  );
  return all.filter((each) => !each.endsWith('.test.ts'));
}

/** The tests beside a file that import it by name: they are tried first, because they notice most of its mutants in little time. */
function testsOf(file: string): string[] {
  const name = `/${basename(file)}'`;
  return globSync(`${dirname(file)}/*.unit.test.ts`, { cwd: root }).filter((test) =>
    readFileSync(join(root, test), 'utf8').includes(name),
  );
}

async function judge(name: string, area: Area, size: number, seed: number): Promise<Omit<Score, 'commit'>> {
  const limits: number[] = [];
  for (const tests of area.tests) {
    const began = performance.now();
    if (!(await pass(null, tests, 60 * MINUTE)))
      throw new Error(`${name}: its tests fail without a mutant: ${tests.join(' ')}`);
    limits.push(10 * (performance.now() - began) + MINUTE);
  }
  const all = filesOf(area).flatMap((file) => mutantsOf(file, readFileSync(join(root, file), 'utf8')));
  const chosen = sample(all, size, seed);
  const [first] = chosen;
  if (first === undefined) throw new Error(`${name}: nothing to mutate`);
  const broken = { ...first, start: 0, end: 0, becomes: "throw new Error('mutant');\n" };
  if (await pass(broken, area.tests.flat(), 60 * MINUTE))
    throw new Error(
      `${name}: the tests pass without ${first.file}: mutants do not reach them, or none of them imports it`,
    );
  const survivors: string[] = [];
  let done = 0;
  for (const mutant of chosen) {
    const source = readFileSync(join(root, mutant.file), 'utf8');
    const changed = source.slice(0, mutant.start) + mutant.becomes + source.slice(mutant.end);
    if (parseSync(mutant.file, changed).errors.length > 0)
      throw new Error(`${mutant.file}:${mutant.line}: ${mutant.becomes} is no TypeScript: mend mutants.ts`);
    const near = testsOf(mutant.file);
    let noticed = near.length > 0 && !(await pass(mutant, near, limits[0] ?? MINUTE));
    for (const [i, tests] of area.tests.entries())
      if (!noticed) noticed = !(await pass(mutant, tests, limits[i] ?? MINUTE));
    done += 1;
    const text = `${mutant.file}:${mutant.line}: ${mutant.was.replaceAll(/\s+/g, ' ')} -> ${mutant.becomes.replaceAll(/\s+/g, ' ')}`;
    if (!noticed) survivors.push(text);
    console.log(`${name} ${done}/${chosen.length} ${noticed ? 'noticed ' : 'SURVIVED'} ${text.slice(0, 160)}`);
  }
  const noticed = chosen.length - survivors.length;
  return {
    seed,
    mutants: all.length,
    sampled: chosen.length,
    noticed,
    percent: Math.floor((100 * noticed) / chosen.length),
    survivors,
  };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    all: { type: 'boolean', default: false },
    seed: { type: 'string' },
    record: { type: 'boolean', default: false },
  },
});
const unknown = positionals.filter((each) => !(each in AREAS));
if (unknown.length > 0) throw new Error(`no area ${unknown.join(', ')}; there are ${Object.keys(AREAS).join(', ')}`);
/** Unless told otherwise, the sample whose score is recorded: only then do the two compare. */
const sizeOf = (recorded: Score | undefined): number =>
  values.all ? Number.POSITIVE_INFINITY : Number(values.sample ?? recorded?.sampled ?? 40);

const commit = values.record ? measuredCommit() : null;
const scores = { ...readScores() };
let below = false;
for (const [name, area] of Object.entries(AREAS)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  const recorded = scores[name];
  const score = await judge(name, area, sizeOf(recorded), Number(values.seed ?? recorded?.seed ?? 1));
  const floor = recorded?.percent ?? 0;
  console.log(`${name}: ${score.noticed} of ${score.sampled} noticed, ${score.percent} %; recorded: ${floor} %`);
  if (score.percent < floor) below = true;
  if (commit !== null) {
    scores[name] = { commit, ...score };
    writeFileSync(SCORES, `${JSON.stringify(scores, null, 2)}\n`);
  }
}
if (below && !values.record) process.exitCode = 1;
