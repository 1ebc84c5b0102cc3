import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const directory = mkdtempSync(join(tmpdir(), 'kronos-release-test-'));
const out = join(directory, 'release');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26, stdio: ['ignore', 'pipe', 'pipe'] });
const arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
const key = join(directory, 'key');
const release = (to: string) =>
  run(
    process.execPath,
    [join(root, 'scripts/run.mjs'), 'release', to, '--arch', arch, '--no-images', '--sign', key],
    root,
  );

describe('npm run release', () => {
  beforeAll(() => {
    run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key], directory);
    release(out);
  });

  it('writes the packages, the bill of materials and the checksums of all of them', () => {
    const files = [
      `kronos-${version}.cdx.json`,
      `kronos-${version}.notes.md`,
      `kronos-${version}.provenance.json`,
      `kronos-${version}.tgz`,
      `kronos-chart-${version}.tgz`,
      `kronos-host-${version}.tgz`,
      `kronos_${version}_${arch}.deb`,
    ];
    expect(readdirSync(out).sort()).toEqual(['SHA256SUMS', 'SHA256SUMS.sig', ...files]);
    const sum = (name: string) =>
      createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex');
    expect(readFileSync(join(out, 'SHA256SUMS'), 'utf8')).toBe(files.map((name) => `${sum(name)}  ${name}\n`).join(''));
  });

  it('the npm package runs in an empty directory, also a service, its threads, and what is written for browsers', () => {
    const empty = join(directory, 'empty');
    mkdirSync(empty);
    writeFileSync(join(empty, 'package.json'), '{ "private": true }');
    run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', join(out, `kronos-${version}.tgz`)], empty);
    const command = join(empty, 'node_modules/.bin/kronos');
    expect(run(command, ['version'], empty)).toMatch(`kronos ${version} `);
    const replayed = spawnSync(command, ['replay', join(root, 'test/histories/0.1.0')], {
      cwd: empty,
      encoding: 'utf8',
    });
    expect(replayed.stdout).toMatch(/of 135 decisions run again/);
    // The page of an evidence file is made of files, the console's among them.
    const recording = ['--in', join(root, 'test/histories/0.1.0'), '--plan', 'gpu-29459520'];
    expect(run(command, ['evidence', ...recording, '--to', 'case.html'], empty)).toMatch(/wrote 1 decision /);
    expect(() => run(join(empty, 'node_modules/.bin/kronos-planner'), ['--config', '/none'], empty)).toThrow(
      /\/none: the file cannot be read/,
    );
  });

  it('the signature fits the checksums, and no other text', () => {
    const allowed = join(directory, 'allowed');
    writeFileSync(allowed, `kronos ${readFileSync(`${key}.pub`, 'utf8')}`);
    const args = [
      '-Y',
      'verify',
      '-f',
      allowed,
      '-I',
      'kronos',
      '-n',
      'kronos-release',
      '-s',
      join(out, 'SHA256SUMS.sig'),
    ];
    const verify = (text: string) => spawnSync('ssh-keygen', args, { input: text }).status;
    const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8');
    expect(verify(sums)).toBe(0);
    expect(verify(sums.replace('a', 'b'))).not.toBe(0);
  });

  it('the provenance names the commit and the digest of every file', () => {
    const { subject, predicate } = JSON.parse(readFileSync(join(out, `kronos-${version}.provenance.json`), 'utf8')) as {
      subject: { name: string }[];
      predicate: { buildDefinition: { resolvedDependencies: { digest: { gitCommit: string } }[] } };
    };
    expect(subject.map(({ name }) => name)).toContain(`kronos_${version}_${arch}.deb`);
    const commit = run('git', ['rev-parse', 'HEAD'], root).trim();
    expect(predicate.buildDefinition.resolvedDependencies[0]?.digest.gitCommit).toBe(commit);
  });

  it('the chart is in the layout of Helm', () => {
    const chart = run('tar', ['-xzOf', join(out, `kronos-chart-${version}.tgz`), 'kronos/Chart.yaml'], out);
    expect(parse(chart)).toMatchObject({ name: 'kronos', version, appVersion: version });
  });

  it('the files for a host have the units and what they start, and no tests', () => {
    const files = run('tar', ['-tzf', join(out, `kronos-host-${version}.tgz`)], out)
      .trim()
      .split('\n');
    for (const path of ['deploy/systemd/kronos.target', 'package-lock.json', 'services/planner/src/main.ts'])
      expect(files).toContain(`kronos-${version}/${path}`);
    expect(files.filter((path) => path.endsWith('.test.ts'))).toEqual([]);
  });

  it('the bill of materials names the dependencies with their versions', () => {
    const bill = JSON.parse(readFileSync(join(out, `kronos-${version}.cdx.json`), 'utf8')) as {
      bomFormat: string;
      metadata: { component: { name: string; version: string } };
      components: { name: string; version: string }[];
    };
    expect(bill.bomFormat).toBe('CycloneDX');
    expect(bill.metadata.component).toMatchObject({ name: 'kronos', version });
    expect(bill.components).toContainEqual(expect.objectContaining({ name: 'zod' }));
    expect(bill.components.map(({ name }) => name)).not.toContain('vitest');
  });

  it('refuses a directory that holds something', () => {
    expect(() => release(out)).toThrow(/is not empty/);
  });
});
