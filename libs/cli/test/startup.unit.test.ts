import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { kronos } from './world.ts';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** Packages that a command line loads, by the paths of the files that Node opened. */
function loaded(...args: string[]): string[] {
  const list = `
    import { registerHooks } from 'node:module';
    const seen = new Set();
    registerHooks({ load(url, context, next) { seen.add(url); return next(url, context); } });
    process.on('exit', () => process.stderr.write('LOADED ' + JSON.stringify([...seen]) + '\\n'));
  `;
  const { stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(list)}`, main, ...args],
    { encoding: 'utf8', env: { ...process.env, XDG_CACHE_HOME: '/nonexistent' } },
  );
  const line = stderr.split('\n').find((one) => one.startsWith('LOADED '));
  const urls = JSON.parse(line?.slice('LOADED '.length) ?? '[]') as string[];
  const names = urls.map((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)|.*\/libs\/([^/]+)\//.exec(url));
  return [...new Set(names.flatMap((match) => match?.[1] ?? match?.[2] ?? []))].sort();
}

/** The packages that cost most to load. */
const heavy = [
  'zod',
  'yaml',
  'undici',
  'pino',
  '@opentelemetry/api',
  '@nats-io/transport-node',
  'eventlog',
  'openstack',
];

describe('a start of the command', () => {
  it.each(['--help', 'plan show --help', 'version', 'completion bash'])(
    '%s loads no library that it does not need',
    (line) => {
      const packages = loaded(...line.split(' '));
      expect(packages).toContain('commander');
      expect(packages.filter((name) => heavy.includes(name))).toEqual([]);
    },
  );

  it('status loads neither the clients of OpenStack and Prometheus nor those for logs and traces', () => {
    const packages = loaded('status', '--config', '/nonexistent.conf');
    expect(packages).toContain('eventlog');
    expect(packages.filter((name) => ['yaml', 'undici', 'pino', 'openstack', 'prometheus'].includes(name))).toEqual([]);
  });
});

describe('without NATS', () => {
  it.each(['status', 'plans', 'tap', 'provision', 'pause --all'])(
    '%s names the servers and the cause',
    async (line) => {
      const directory = mkdtempSync(join(tmpdir(), 'kronos-no-nats-'));
      try {
        const file = join(directory, 'kronos.conf');
        const ports = ['scorer', 'planner', 'executor', 'ledger'].map((name) => `${name}_port = 0`).join('\n');
        // Nothing listens on port 1.
        writeFileSync(file, `[engine]\naggregates = gpu\n[nats]\nservers = nats://127.0.0.1:1\n[http]\n${ports}\n`);
        const { status, out, err } = await kronos([...line.split(' '), '-c', file]);
        expect(status).toBe(1);
        expect(`${out}${err}`).toContain('no NATS server answers at 127.0.0.1:1 (connection refused)');
      } finally {
        rmSync(directory, { recursive: true });
      }
    },
  );
});
