// Makes the files of a release in a new directory:
//   node scripts/run.mjs release DIRECTORY [--arch amd64,arm64] [--no-images] [--sign KEY]
//
//   --arch       architectures of the Debian packages and the images; default: both
//   --no-images  makes no images
//   --sign       signs SHA256SUMS with this private key of ssh-keygen
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { errorText } from '@kronos/contracts/words';
import { parse } from 'yaml';
import { ARCHITECTURES, debianPackage } from './debian.ts';
import { SAME_BYTES } from './dependencies.ts';
import { type Material, ociImages } from './images.ts';
import { LOADED } from './loaded.ts';
import { releaseNotes } from './releaseNotes.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

type Manifest = {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};
/** An entry of the lock file. */
type Locked = {
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
};
const manifest = (path: string): Manifest => JSON.parse(read(path)) as Manifest;

/** Fails the release: where, and what to do. */
function refuse(problem: string): never {
  console.error(`kronos: no release: ${problem}`);
  process.exit(1);
}

const { version, description, license, optionalDependencies } = manifest('package.json');
const { values: given, positionals } = parseArgs({
  options: {
    arch: { type: 'string', default: Object.keys(ARCHITECTURES).join(',') },
    images: { type: 'boolean', default: true },
    sign: { type: 'string' },
  },
  allowNegative: true,
  allowPositionals: true,
});
const architectures = given.arch.split(',');
const out = resolve(positionals[0] ?? refuse('name a directory: npm run release -- DIRECTORY'));
if (existsSync(out) && readdirSync(out).length > 0) refuse(`${out} is not empty: name a new directory`);
const chart = parse(read('deploy/helm/kronos/Chart.yaml')) as { readonly version: string; readonly appVersion: string };
if (chart.version !== version || chart.appVersion !== version)
  refuse(
    `deploy/helm/kronos/Chart.yaml has version ${chart.version} and appVersion ${chart.appVersion}, package.json has ${version}: make them equal`,
  );
const notes = notesOf(version);
// Everybody may read what is in a package, whoever makes it.
process.umask(0o022);
mkdirSync(out, { recursive: true });

/** The packages of Debian in the images. */
const materials: Material[] = [];
const work = mkdtempSync(join(tmpdir(), 'kronos-release-'));
try {
  const { stage, dependencies } = npmPackage();
  for (const architecture of architectures) {
    const nodePackage = nodeOf(architecture);
    const input = { root, stage, work, out, version, dependencies, architecture, nodePackage };
    await debianPackage(input);
    if (given.images) materials.push(...ociImages({ ...input, revision: git('rev-parse', '--short', 'HEAD') }));
  }
  archive(`kronos-chart-${version}.tgz`, 'deploy/helm', ['kronos']);
  archive(`kronos-host-${version}.tgz`, '.', hostFiles(), `kronos-${version}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
writeFileSync(join(out, `kronos-${version}.notes.md`), notes);
writeFileSync(join(out, `kronos-${version}.provenance.json`), provenance());
const sums = digests().map(({ name, sha256 }) => `${sha256}  ${name}\n`);
writeFileSync(join(out, 'SHA256SUMS'), sums.join(''));
if (given.sign !== undefined)
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', given.sign, '-n', 'kronos-release', join(out, 'SHA256SUMS')]);
process.stdout.write(sums.join(''));

function notesOf(of: string): string {
  try {
    return releaseNotes(read('CHANGELOG.md'), of);
  } catch (error) {
    return refuse(errorText(error));
  }
}

function digests(): { readonly name: string; readonly sha256: string }[] {
  const digest = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(out, name)))
      .digest('hex');
  return readdirSync(out)
    .sort()
    .map((name) => ({ name, sha256: digest(name) }));
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

/** The sources and tools of the files, as an in-toto statement with a SLSA predicate. It has no times: it depends on the sources alone. */
function provenance(): string {
  const changed = git('status', '--porcelain', '--untracked-files=no') !== '';
  const tools = { node: process.versions.node, npm: npm(['--version'], root).trim() };
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: digests().map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'npm run release',
        externalParameters: { architectures, uncommittedChanges: changed },
        resolvedDependencies: [
          { name: 'kronos', digest: { gitCommit: git('rev-parse', 'HEAD') } },
          ...materials.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
        ],
      },
      runDetails: { builder: { id: 'scripts/release.ts', version: tools } },
    },
  };
  return `${JSON.stringify(statement, null, 2)}\n`;
}

/** The directory of the npm package with the Node of an architecture: installed here, or from npm's cache or registry. */
function nodeOf(architecture: string): string {
  const name =
    ARCHITECTURES[architecture] ?? refuse(`no architecture ${architecture}: ${Object.keys(ARCHITECTURES).join(', ')}`);
  const installed = join(root, 'node_modules', name);
  if (existsSync(installed)) return installed;
  const directory = join(work, name);
  mkdirSync(directory);
  const wanted = `${name}@${optionalDependencies?.[name] ?? ''}`;
  try {
    npm(['pack', '--prefer-offline', '--silent', wanted], directory);
  } catch {
    refuse(`npm cannot get ${wanted}: make only what is here with --arch`);
  }
  const [packed = ''] = readdirSync(directory);
  execFileSync('tar', ['-xzf', packed], { cwd: directory });
  return join(directory, 'package');
}

function npm(args: readonly string[], cwd: string): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** A tar of files whose bytes depend on the files alone. */
function archive(name: string, from: string, files: readonly string[], below?: string): void {
  // A directory or a program that only its owner may enter or run becomes one for everybody.
  const same = [...SAME_BYTES, '--mode=u+rwX,go+rX-w'];
  const prefix = below === undefined ? [] : ['--transform', `s,^,${below}/,S`];
  const tar = join(work, 'archive.tar');
  execFileSync('tar', ['--create', '--file', tar, ...same, ...prefix, '-C', join(root, from), ...files]);
  // The head of the archive must not have the time of its compression.
  execFileSync('gzip', ['--no-name', '--best', tar]);
  renameSync(`${tar}.gz`, join(work, name));
  cpSync(join(work, name), join(out, name));
}

/** The files for a host that runs the services with systemd: the sources with their lock file, the units, the samples, the documents. */
function hostFiles(): string[] {
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0');
  const wanted =
    /^(libs|services|deploy|docs|scripts)\/|^(package(-lock)?\.json|\.npmrc|LICENSE|README\.md|CHANGELOG\.md)$/;
  return tracked.filter((path) => wanted.test(path) && isLoaded(path) && existsSync(join(root, path))).sort();
}

/** Whether a file takes part in a run, and not only in tests. */
function isLoaded(path: string): boolean {
  return !/\.test\.ts$|^(libs|services)\/[^/]+\/(test|testing)\//.test(path);
}

/** npm gives each bill of materials another serial number and the time: both would differ in each run. */
function withoutChance(bill: string): string {
  const { serialNumber: _, metadata, ...rest } = JSON.parse(bill) as Record<string, unknown>;
  const { timestamp: __, ...about } = metadata as Record<string, unknown>;
  return `${JSON.stringify({ ...rest, metadata: about }, null, 2)}\n`;
}

/** The files of the npm package, and the production dependencies by their path below the root. */
type Packed = {
  readonly stage: string;
  readonly dependencies: readonly { readonly path: string; readonly optional: boolean }[];
};

/**
 * The npm package. Node strips types only from files outside node_modules, so they are stripped here; and the rooms of the
 * workspace import each other by path, because they are no packages of their own.
 */
function npmPackage(): Packed {
  // npm gives the bill of materials the name of the directory.
  const stage = join(work, 'kronos');
  const rooms = globSync(['libs/*/package.json', 'services/*/package.json'], { cwd: root }).sort();
  const places = new Map<string, string>();
  const dependencies: Record<string, string> = {};
  for (const room of rooms) {
    const { name, exports = {}, dependencies: needed = {} } = manifest(room);
    for (const [subpath, file] of Object.entries(exports)) places.set(join(name, subpath), join(dirname(room), file));
    for (const [other, wanted] of Object.entries(needed))
      if (!other.startsWith('@kronos/')) dependencies[other] = wanted;
  }
  for (const room of rooms.map((path) => dirname(path)))
    for (const file of globSync(`${room}/{${LOADED.join(',')}}/**/*`, { cwd: root, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const path = relative(root, join(file.parentPath, file.name));
      if (isLoaded(path)) put(path, /\.(ts|m?js)$/.test(path) ? script(path, places) : readFileSync(join(root, path)));
    }
  for (const path of ['scripts/bundledNode.mjs', 'docs/runbook.md', 'LICENSE', 'README.md', 'CHANGELOG.md'])
    put(path, readFileSync(join(root, path)));
  const bin = Object.fromEntries(
    Object.entries(manifest('libs/cli/package.json').bin ?? {}).map(([name, file]) => [name, join('libs/cli', file)]),
  );
  const engines = { node: '>=20' };
  const about = { name: 'kronos', version, description, license, type: 'module', engines, bin };
  put('package.json', JSON.stringify({ ...about, dependencies, optionalDependencies }, null, 2));
  npm(['pack', '--pack-destination', out], stage);

  // The shrinkwrap pins the versions that the tests ran with.
  const lock = JSON.parse(read('package-lock.json')) as { readonly packages: Readonly<Record<string, Locked>> };
  const inUse = Object.entries(lock.packages).filter(
    ([path, { link, dev, devOptional }]) => path.startsWith('node_modules/') && !(link || dev || devOptional),
  );
  const packages = {
    '': { name: 'kronos', version, license, dependencies, optionalDependencies },
    ...Object.fromEntries(inUse),
  };
  put('package-lock.json', JSON.stringify({ name: 'kronos', version, lockfileVersion: 3, requires: true, packages }));
  const bill = npm(['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], stage);
  writeFileSync(join(out, `kronos-${version}.cdx.json`), withoutChance(bill));
  return {
    stage,
    dependencies: inUse.map(([path, { optional = false }]) => ({ path, optional })),
  };

  function put(path: string, content: string | Uint8Array): void {
    const target = join(stage, path.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
}

/** The text of a script as JavaScript; every name of a TypeScript file in it is that of the stripped one. */
function script(path: string, places: ReadonlyMap<string, string>): string {
  const text = path.endsWith('.ts') ? stripTypeScriptTypes(read(path)) : read(path);
  return text
    .replaceAll(/(?<quote>['"])(?<name>@kronos\/[\w/-]+)\k<quote>/g, (_, quote: string, name: string) => {
      const place = places.get(name);
      if (place === undefined) return `${quote}${name}${quote}`;
      const to = relative(dirname(path), place);
      return `${quote}${to.startsWith('.') ? to : `./${to}`}${quote}`;
    })
    .replaceAll(/(?<=[\w})])\.ts(?=['"`])/g, '.js');
}
