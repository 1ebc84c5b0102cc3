/** The way of docs/install.md to services of systemd: its commands and files, followed on a system that the tests boot. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findNatsServer } from '@kronos/eventlog/testing';
import { demoPolicies } from '@kronos/simcloud';
import { expect } from 'vitest';
import { cloudWithAccounts, credentialSecret, scorerPassword } from './accounts.ts';
import { releaseFiles, root, version } from './files.ts';
import type { Machine } from './machine.ts';
import type { transcript } from './transcript.ts';

const section = /\n## systemd\n(.*?)\n## /s.exec(readFileSync(join(root, 'docs/install.md'), 'utf8'))?.[1] ?? '';
const blocks = [...section.matchAll(/^( *)```(\w*)\n(.*?)^ *```$/gms)].map(([, indent = '', language, text = '']) => ({
  language,
  text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
}));
/** The commands of the page, and its files, in their order. */
const commands = blocks.filter(({ language }) => language === '').map(({ text }) => text);
const [scorerEnv = '', executorEnv = ''] = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
const conf = blocks.find(({ language }) => language === 'ini')?.text ?? '';

const CLOUD_PORT = 9780;

/** The commands of the page that begin so. */
export function command(start: string): string {
  const found = commands.find((text) => text.startsWith(start));
  if (found === undefined) throw new Error(`docs/install.md has no block that begins with ${start}`);
  return found.replaceAll('VERSION', version);
}

/** Brings to a system a file of the release, and the nats-server that the page wants. */
export async function bring(name: string, machine: Machine): Promise<void> {
  copyFileSync(join(releaseFiles(), name), join(machine.directory, 'root', name));
  const { path } = await findNatsServer('newest');
  copyFileSync(path, join(machine.directory, 'usr/local/bin/nats-server'));
}

/**
 * The steps of the page from the installation to a first plan, which moves nothing.
 *
 * @param simulated starts a simulated cloud there
 */
export async function firstPlan(
  machine: Machine,
  said: ReturnType<typeof transcript>,
  simulated: string,
): Promise<void> {
  const put = (path: string, text: string) => writeFileSync(join(machine.directory, path), text);
  const type = (start: string) => said.typed(command(start), () => machine.run(command(start)));
  const edit = (path: string, text: string) => {
    put(path, text);
    said.wrote(`/${path}`, text);
  };
  put('root/cloud.json', JSON.stringify(cloudWithAccounts()));
  await machine.run(`systemd-run --unit cloud ${simulated} --scenario ~/cloud.json --port ${CLOUD_PORT}`);
  put('root/scorer.password', scorerPassword);
  put('root/executor.secret', credentialSecret);
  await type('kronos keys');
  await type('mkdir -p /etc/nats');
  await type('cp scorer.password');
  edit('etc/kronos/scorer.env', scorerEnv);
  edit('etc/kronos/executor.env', executorEnv);
  const site = conf
    .replace('https://keystone.example.org:5000/v3', `http://127.0.0.1:${CLOUD_PORT}/identity/v3`)
    .replace('http://prometheus.example.org:9090', `http://127.0.0.1:${CLOUD_PORT}/prometheus`);
  edit('etc/kronos/kronos.conf', site);
  edit('etc/kronos/policies.yaml', demoPolicies);
  const checked = await type('systemctl start kronos-provision');
  expect(checked).toMatch(/^ok +aggregate general: /m);
  await type('systemctl enable --now kronos.target');
  // The page goes on in one shell; each script here has its own.
  const [, operator = ''] = /^(export .*)$/m.exec(command('systemctl start kronos-provision')) ?? [];
  const looks = command('kronos status');
  const shown = await said.typed(looks, () => machine.run(`${operator}\n${looks}`));
  expect(shown).toMatch(/general: planned \(\d+ moves, dry run\)/);
  expect(shown).toMatch(/dry run +The move lowers the combined imbalance/);
  expect(await machine.run('systemctl is-active kronos.target kronos@{scorer,planner,executor,ledger}')).toBe(
    'active\n'.repeat(5),
  );
}
