// Sets the version of a release in every file that names it:
//   npm run release:prepare -- VERSION [--day YYYY-MM-DD]
//
//   --day   day of the release; default: today
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { errorText } from '@kronos/contracts/words';
import { plannerVersion } from '@kronos/placement';
import { namesVersion, versionProblem, withVersion } from './versions.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

function refuse(problem: string): never {
  console.error(`kronos: nothing is prepared: ${problem}`);
  process.exit(1);
}

const { values, positionals } = parseArgs({
  options: { day: { type: 'string', default: new Date().toISOString().slice(0, 10) } },
  allowPositionals: true,
});
const to = positionals[0] ?? refuse('name a version: npm run release:prepare -- 1.0.0');
const { version: from } = JSON.parse(read('package.json')) as { readonly version: string };
const problem = versionProblem(from, to);
if (problem !== null) refuse(problem);

const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
const files = tracked.filter(namesVersion);
try {
  const version = { from, to, day: values.day };
  // All of them or none.
  const texts = files.map((file) => [file, withVersion(file, read(file), version)] as const);
  for (const [file, text] of texts) writeFileSync(join(root, file), text);
} catch (error) {
  refuse(errorText(error));
}

const RELEASED = 'test/golden/plans/released.json';
const released = JSON.parse(read(RELEASED)) as Record<string, string>;
writeFileSync(join(root, RELEASED), `${JSON.stringify({ ...released, [to]: plannerVersion }, null, 2)}\n`);
const recorded = Object.values(released).includes(plannerVersion);
console.log(`${files.length} files are of version ${to} now, and ${RELEASED} has its planner version, ${plannerVersion}.
What remains:
${recorded ? '' : `  node scripts/run.mjs node test/replay/writeHistory.ts ${to}     records a history of this planner version\n`}  npm run generate
  docs/releasing.md, from step 4 on`);
