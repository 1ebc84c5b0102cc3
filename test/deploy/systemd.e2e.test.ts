import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const units = new URL('../../deploy/systemd/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, units), 'utf8');
const tool = spawnSync('systemd-analyze', ['--version']).status === 0;
if (!tool) console.warn('skipped: there is no systemd-analyze');

/** Copies the units as an installation would: templates with an instance, and paths that point to this checkout. */
function installed(): string {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-units-'));
  mkdirSync(join(directory, 'bin'));
  writeFileSync(join(directory, 'bin', 'node'), '#!/bin/sh\n');
  chmodSync(join(directory, 'bin', 'node'), 0o755);
  const instances: Record<string, string[]> = {
    'kronos@.service': ['scorer', 'planner', 'executor', 'ledger'].map((name) => `kronos@${name}.service`),
    'kronos-executor@.service': ['kronos-executor@large\\x20memory.service'],
  };
  for (const name of readdirSync(units).filter((each) => each.endsWith('.d')))
    cpSync(new URL(`${name}/`, units), join(directory, name), { recursive: true });
  for (const name of readdirSync(units).filter((each) => !each.endsWith('.d')))
    for (const unit of instances[name] ?? [name])
      writeFileSync(
        join(directory, unit),
        read(name).replaceAll('/opt/kronos/node_modules/.bin', join(directory, 'bin')),
      );
  return directory;
}

it.skipIf(!tool)('systemd-analyze finds nothing wrong with the units, and little exposed', () => {
  const directory = installed();
  try {
    const files = readdirSync(directory).filter((name) => /\.(service|target)$/.test(name));
    const paths = files.map((name) => join(directory, name));
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', ...paths], { encoding: 'utf8' });
    // systemd-analyze also reads the units of the machine. Only its findings about the units of Kronos count.
    const ours = verified.stderr.split('\n').filter((line) => /kronos/.test(line));
    expect(ours).toEqual([]);
    for (const name of files.filter((file) => file.endsWith('.service'))) {
      const path = join(directory, name);
      // The threshold is the exposure times ten; it exits with an error above it.
      execFileSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', path], { stdio: 'pipe' });
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
