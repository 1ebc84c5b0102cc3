import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { findPrometheus } from './prometheus.ts';

type Rule = { readonly alert?: string };
type Rules = { readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] };
type Tests = { readonly tests: readonly { readonly name: string }[] };

const run = promisify(execFile);
const deployed = fileURLToPath(new URL('../../deploy/prometheus', import.meta.url));

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kronos-alerts-'));
});
afterAll(() => rm(directory, { recursive: true }));

/**
 * One pair of files for each alert: its rule alone, and its tests. promtool evaluates every rule at every step of every test,
 * and no alert depends on another: with all rules in each test it takes twenty times the CPU.
 */
async function split(): Promise<string[]> {
  const read = async (name: string) => parse(await readFile(join(deployed, name), 'utf8'));
  const { groups } = (await read('alerts.yml')) as Rules;
  const { tests, ...settings } = (await read('alerts.test.yml')) as Tests;
  const alone = groups.flatMap((group) =>
    group.rules.map((rule) => ({ ...group, rules: [rule], alert: rule.alert ?? '' })),
  );
  const names = alone.map(({ alert }) => alert);
  // A test without an alert would be in no pair.
  expect(tests.filter(({ name }) => !names.includes(name.split(' ')[0] ?? ''))).toEqual([]);
  return Promise.all(
    alone.map(async ({ alert, ...group }) => {
      const own = tests.filter(({ name }) => name.split(' ')[0] === alert);
      const files = { rules: `${alert}.yml`, tests: `${alert}.test.yml` };
      await writeFile(join(directory, files.rules), JSON.stringify({ groups: [group] }));
      const content = { ...settings, rule_files: [files.rules], tests: own };
      await writeFile(join(directory, files.tests), JSON.stringify(content));
      return files.tests;
    }),
  );
}

it('the alerts fire when they should and stay quiet when they should', async (context) => {
  const promtool = await findPrometheus('promtool');
  if (promtool === null) return context.skip('there is no promtool, and its package cannot be downloaded');
  await run(promtool, ['check', 'rules', 'alerts.yml'], { cwd: deployed });
  await run(promtool, ['test', 'rules', ...(await split())], { cwd: directory });
});
