import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { liveScript, type Scripted, script, smallCloud } from '@kronos/backtest/testing';
import { demoPolicies } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kronos } from '../../libs/cli/test/world.ts';
import { SHORT_SEARCH } from './world.ts';

let root: string;
let lived: Scripted;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-backtest-'));
  lived = await liveScript({ scenario: smallCloud(), scenes: script, hours: 2 });
  await writeFile(join(root, 'policies.yaml'), demoPolicies);
  await writeFile(
    join(root, 'kronos.conf'),
    `[engine]
aggregates = general
policies_file = ${join(root, 'policies.yaml')}
[nova]
auth_type = password
auth_url = ${lived.sim.urls.identity}
username = admin
password = secret
project_name = admin
user_domain_id = default
project_domain_id = default
[prometheus]
url = ${lived.sim.urls.prometheus}
`,
  );
}, 120_000);

afterAll(async () => {
  await lived.close();
  await rm(root, { recursive: true });
});

const run = (...args: string[]) =>
  kronos(['-c', join(root, 'kronos.conf'), ...args], { nowMs: lived.endMs, env: SHORT_SEARCH });

/** A module that kills its process, as `kill -9` does, once the fifth decision is kept. */
const DIES = `data:text/javascript,${encodeURIComponent(`
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { appendFileSync } = fs;
let kept = 0;
fs.appendFileSync = (path, ...rest) => {
  appendFileSync(path, ...rest);
  if (String(path).endsWith('.planned.jsonl') && ++kept === 5) process.kill(process.pid, 'SIGKILL');
};
syncBuiltinESMExports();
`)}`;

describe('kronos backtest', () => {
  it('shows what Kronos would have done, without a service or a NATS server', async () => {
    const to = join(root, 'case');
    const html = join(root, 'case.html');
    const args = ['backtest', '--since', '2h', '--to', to, '--html', html, '--rate', '1000', '--decisions'];
    const { status, out, err } = await run(...args, '-o', 'json');
    expect(status, err).toBe(0);
    const { aggregates } = JSON.parse(out);
    expect(aggregates).toHaveLength(1);
    const [of] = aggregates;
    expect(of).toMatchObject({ aggregate: 'general', steps: 25, people: { moves: 7, notJudged: 1 } });
    expect(of.moves.count).toBeGreaterThan(0);
    expect(of.moves.copyingMs).toBeGreaterThan(0);
    const [cpu] = of.policies;
    expect(cpu.would.aboveMs).toBeLessThan(cpu.was.aboveMs);
    expect(cpu.would.peak).toBeLessThanOrEqual(cpu.was.peak);
    const page = await readFile(html, 'utf8');
    expect(page).toContain('<svg');
    expect(page).toContain('the load of a server does not depend on its host');
    expect(page).not.toContain('<script');

    // A second run reads nothing again and says the same.
    const before = lived.sim.counts();
    const again = await run(...args, '-o', 'json');
    expect(JSON.parse(again.out).aggregates).toEqual(aggregates);
    const asked = (counts: Readonly<Record<string, number>>) =>
      Object.entries(counts).filter(([call]) => !call.includes('identity'));
    expect(asked(lived.sim.counts())).toEqual(asked(before));
  });

  it('goes on in the middle of its planning after kill -9, and says the same as a run without it', async () => {
    const to = join(root, 'killed');
    const [since, until] = [lived.endMs - 2 * 3_600_000, lived.endMs].map((ms) => new Date(ms).toISOString());
    const args = ['backtest', '--since', `${since}`, '--until', `${until}`, '--to', to, '--rate', '1000'];
    const main = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));
    const child = spawn(process.execPath, ['--import', DIES, main, '-c', join(root, 'kronos.conf'), ...args], {
      stdio: 'ignore',
      env: { ...process.env, ...SHORT_SEARCH },
    });
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
    const resumed = await run(...args);
    expect(resumed.status, resumed.err).toBe(0);
    expect(resumed.err).toContain('5 steps of an earlier run are not decided again');
    const whole = await run(...args.with(-3, join(root, 'alone')), '-o', 'json');
    const again = await run(...args, '-o', 'json');
    expect(JSON.parse(again.out).aggregates).toEqual(JSON.parse(whole.out).aggregates);
  });

  it('makes a recording on which replay, a what-if, explain and the report work', async () => {
    const to = join(root, 'case');
    const replayed = await run('replay', to, '-o', 'json');
    expect(replayed.status, replayed.err).toBe(0);
    expect(JSON.parse(replayed.out).totals).toMatchObject({ decisions: 25, identical: 25 });
    const whatIf = await run('replay', to, '--set', 'engine.cooldown=0', '-o', 'json');
    expect(whatIf.status, whatIf.err).toBe(0);
    const explained = await run('explain', 'cycle', '--in', to);
    expect(explained.status, explained.err).toBe(0);
    const report = await run('report', to, '--since', 'all');
    expect(report.status, report.err).toBe(0);
    expect(report.out).toContain('dry run: nothing was moved');
  });

  it('refuses a recording whose sources were changed, and names the file', async () => {
    const file = join(root, 'case', 'sources', 'backtest.json');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('"threshold": 0.2,', '"threshold": 0.9,'));
    const { status, err } = await run('replay', join(root, 'case'), '--what-if');
    await writeFile(file, text);
    expect(status).toBe(1);
    expect(err).toContain('sources/backtest.json: was changed after it was recorded');
  });

  it('refuses a range that ends before it begins, and a step that is none', async () => {
    const range = await run('backtest', '--since', '1h', '--until', '90m', '--to', join(root, 'none'));
    expect(range.status).toBe(2);
    expect(range.err).toContain('--since is not before --until');
    const step = await run('backtest', '--step', 'often', '--to', join(root, 'none'));
    expect(step.status).toBe(2);
    expect(step.err).toContain('--step takes a duration, not "often"');
  });
});
