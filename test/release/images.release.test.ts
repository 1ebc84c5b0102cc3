import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEngine } from '../containers/dockerEngine.ts';
import { architecture, releaseFiles, root, version } from './files.ts';
import { noMachines, tool } from './machine.ts';

const none = noMachines();
if (none !== null) console.warn(`skipped: the images are not made; ${none}`);

const TARGETS = ['scorer', 'planner', 'executor', 'ledger', 'simcloud'];
const names = ['kronos', ...TARGETS.map((target) => `kronos-${target}`)].map((name) => `${name}:${version}`);

describe.skipIf(none !== null)('the images of a release', () => {
  const directory = none === null ? mkdtempSync(join(tmpdir(), 'kronos-images-')) : '';
  let files = '';
  const archive = (arch: string) => join(files, `kronos-images-${version}-${arch}.oci.tar`);
  beforeAll(() => {
    files = releaseFiles();
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  // Files that are made already may be of other sources, and so are those of a checkout with changes.
  it.skipIf(process.env.KRONOS_RELEASE !== undefined)(
    'every file is the same, byte by byte, from a clone elsewhere with another umask, zone and locale',
    () => {
      const [again, clone] = [join(directory, 'again'), join(directory, 'another place')];
      const script = `umask 077
        git clone --quiet "$1" "$2"
        cp --archive --link "$1/node_modules" "$2" || cp --archive "$1/node_modules" "$2"
        # Not older than the lock file of the clone, which would have them installed again.
        touch "$2/node_modules/.package-lock.json"
        export TZ=Pacific/Auckland LC_ALL=C.UTF-8
        exec "$3" "$2/scripts/run.mjs" release "$4"`;
      execFileSync('bash', ['-ec', script, 'bash', root, clone, process.execPath, again], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      expect(readdirSync(again)).toEqual(readdirSync(files));
      for (const name of readdirSync(files))
        expect(readFileSync(join(again, name)).equals(readFileSync(join(files, name))), name).toBe(true);
      for (const made of [again, clone]) rmSync(made, { recursive: true });
    },
  );

  it('skopeo copies each image, and knows its architecture', async () => {
    const { path, env } = await tool('skopeo', 'skopeo');
    const skopeo = (...args: string[]) =>
      execFileSync(path, ['--insecure-policy', ...args], { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    for (const arch of ['amd64', 'arm64'])
      for (const name of names) {
        const copy = join(directory, 'copy');
        skopeo('copy', `oci-archive:${archive(arch)}:${name}`, `dir:${copy}`);
        expect(JSON.parse(skopeo('inspect', '--config', `dir:${copy}`))).toMatchObject({
          architecture: arch,
          os: 'linux',
        });
        rmSync(copy, { recursive: true });
      }
  });

  it('the programs of each archive are of its architecture', () => {
    const machines = { amd64: 0x3e, arm64: 0xb7 };
    for (const [arch, machine] of Object.entries(machines)) {
      const tar = (...args: string[]) => execFileSync('tar', args, { maxBuffer: 2 ** 30 });
      const read = (path: string) => JSON.parse(tar('-xOf', archive(arch), path).toString('utf8')) as unknown;
      const [first] = read('manifest.json') as [{ Layers: string[] }];
      const [, runtime = ''] = first.Layers;
      const layer = join(directory, 'layer.tar.gz');
      execFileSync('sh', ['-c', `tar -xOf ${archive(arch)} ${runtime} > ${layer}`]);
      const node = tar('-xzOf', layer, './usr/local/bin/node');
      // e_machine of the ELF header.
      expect(node.readUInt16LE(18), arch).toBe(machine);
    }
  });

  it('docker loads the archive, and the command and the services start', () => {
    const engine = startEngine();
    if ('none' in engine) {
      console.warn(`skipped: docker loads no image. ${engine.none}`);
      return;
    }
    const docker = (...args: string[]) =>
      execFileSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    try {
      // An engine that had images of these names says so, too.
      const loaded = docker('load', '-i', archive(architecture)).match(/^Loaded image: .*$/gm);
      expect(loaded?.sort()).toEqual(names.map((name) => `Loaded image: ${name}`).sort());
      expect(docker('run', '--rm', '--network', 'none', `kronos:${version}`, 'version')).toContain(
        `kronos ${version} `,
      );
      const entry = ['--entrypoint', 'kronos'];
      expect(docker('run', '--rm', '--network', 'none', ...entry, `kronos:${version}`, 'version')).toContain(version);
      for (const target of ['scorer', 'planner', 'executor', 'ledger'])
        expect(() =>
          docker('run', '--rm', '--network', 'none', `kronos-${target}:${version}`, '--config', '/none'),
        ).toThrow(/\/none: the file cannot be read/);
    } finally {
      for (const name of names) execFileSync('docker', ['image', 'rm', '-f', name], { stdio: 'ignore' });
      engine.end();
    }
  });
});
