/** `npm run simulate:bugs`: plants each bug and counts the seeds until the simulation finds it. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bugs } from './bugs.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    days: { type: 'string', default: '1' },
    hosts: { type: 'string', default: '10' },
    vms: { type: 'string', default: '60' },
    trouble: { type: 'string', default: '3' },
    only: { type: 'string' },
    /** Number of the first bug, and how many. */
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '1000' },
    json: { type: 'boolean', default: false },
  },
});

interface Found {
  readonly bug: string;
  /** Seeds that were run; the last one found it. */
  readonly seeds: number;
  readonly rule: string | null;
}

function hunt(bug: string): Promise<Found> {
  return new Promise((resolve, reject) => {
    const args = [join(import.meta.dirname, 'main.ts'), '--bug', bug, '--seed', values.seed, '--seeds', values.seeds];
    const size = ['--days', values.days, '--hosts', values.hosts, '--vms', values.vms, '--trouble', values.trouble];
    const child = spawn(process.execPath, [...args, ...size, '--until-breach'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      const rule = /^BREACH (\S+)/m.exec(out)?.[1] ?? (code === 0 ? null : 'crash');
      resolve({ bug, seeds: Math.max(1, out.match(/^seed /gm)?.length ?? 0), rule });
    });
  });
}

let missed = 0;
const wanted = bugs
  .filter(({ name }) => values.only === undefined || name.includes(values.only))
  .slice(Number(values.from) - 1, Number(values.from) - 1 + Number(values.count));
for (const { name } of wanted) {
  const found = await hunt(name);
  if (found.rule === null) missed++;
  const text =
    found.rule === null
      ? `NOT FOUND in ${found.seeds} seeds`
      : `found by "${found.rule}" with seed number ${found.seeds}`;
  process.stdout.write(values.json ? `${JSON.stringify(found)}\n` : `${name.padEnd(52)} ${text}\n`);
}
process.stdout.write(`${wanted.length - missed} of ${wanted.length} bugs found\n`);
process.exit(missed === 0 ? 0 : 1);
