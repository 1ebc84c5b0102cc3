/** The images of a release as one OCI archive for each architecture: docs/releasing.md. Made without a Docker engine. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { copyDependencies, type ReleaseInput, SAME_BYTES } from './dependencies.ts';
import { imageConfigs } from './dockerfile.ts';

type ImagesInput = ReleaseInput & { readonly revision: string };

/** A file that a release is made of. */
export type Material = { readonly name: string; readonly sha256: string };

type Blob = { readonly mediaType: string; readonly digest: string; readonly size: number };
type Layer = { readonly blob: Blob; readonly diffId: string; readonly by: string };

/** Packages of Debian that Node needs. */
const BASE = ['base-files', 'libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1'];
const UNUSED_OF_BASE = ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/lintian', 'usr/share/info'];
/** Target -> the directories of the stage that it has besides what all share. */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  scorer: ['services/scorer'],
  planner: ['services/planner'],
  executor: ['services/executor'],
  ledger: ['services/ledger', 'docs/runbook.md'],
  simcloud: ['libs/simcloud'],
  kronos: ['libs/simcloud', 'libs/cli', 'services', 'docs/runbook.md'],
};
const CREATED = '2000-01-01T00:00:00Z';
const OCI = 'application/vnd.oci.image';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Writes kronos-images-VERSION-ARCHITECTURE.oci.tar. Gives the Debian packages that it was made of. */
export function ociImages(input: ImagesInput): readonly Material[] {
  const { root, work, out, version, architecture } = input;
  const place = join(work, `images-${architecture}`);
  const layout = join(place, 'layout');
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  const put = (mediaType: string, bytes: Uint8Array): Blob => {
    const digest = sha256(bytes);
    writeFileSync(join(layout, 'blobs/sha256', digest), bytes);
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
  };
  const layer = (by: string, tree: string): Layer => {
    const tar = packed(tree, '.');
    const bytes = execFileSync('gzip', ['--no-name'], { input: tar, maxBuffer: 2 ** 30 });
    rmSync(tree, { recursive: true });
    return { blob: put(`${OCI}.layer.v1.tar+gzip`, bytes), diffId: `sha256:${sha256(tar)}`, by };
  };

  const { tree, materials } = baseTree(place, architecture);
  const shared = [
    layer(`Debian: ${BASE.join(', ')}`, tree),
    layer('Node and dependencies', runtimeTree(input, join(place, 'runtime'))),
    layer('Kronos', sharedTree(input, join(place, 'shared'))),
  ];
  const configs = imageConfigs(readFileSync(join(root, 'deploy/images/Dockerfile'), 'utf8'), {
    VERSION: version,
    REVISION: input.revision,
  });
  const images = Object.entries(TARGETS).map(([target, parts]) => {
    const layers = [...shared, layer(`Kronos ${target}`, targetTree(input, join(place, target), parts))];
    const image = {
      created: CREATED,
      architecture,
      os: 'linux',
      ...(architecture === 'arm64' ? { variant: 'v8' } : {}),
      config: JSON.parse(JSON.stringify(configs.get(target)).replaceAll('/src/main.ts', '/src/main.js')) as object,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ by }) => ({ created: CREATED, created_by: by })),
    };
    const config = put(`${OCI}.config.v1+json`, Buffer.from(JSON.stringify(image)));
    const manifest = {
      schemaVersion: 2,
      mediaType: `${OCI}.manifest.v1+json`,
      config,
      layers: layers.map(({ blob }) => blob),
    };
    const name = `${target === 'kronos' ? 'kronos' : `kronos-${target}`}:${version}`;
    return { name, config, layers, manifest: put(manifest.mediaType, Buffer.from(JSON.stringify(manifest))) };
  });
  writeIndexes(layout, images, architecture);
  writeFileSync(
    join(out, `kronos-images-${version}-${architecture}.oci.tar`),
    packed(layout, ...readdirSync(layout).sort()),
  );
  rmSync(place, { recursive: true });
  return materials;
}

type Image = {
  readonly name: string;
  readonly config: Blob;
  readonly layers: readonly Layer[];
  readonly manifest: Blob;
};

/** The index of OCI, and that of `docker save`, which engines before Docker 25 read. */
function writeIndexes(layout: string, images: readonly Image[], architecture: string): void {
  const file = ({ digest }: Blob): string => `blobs/${digest.replace(':', '/')}`;
  const index = {
    schemaVersion: 2,
    mediaType: `${OCI}.index.v1+json`,
    manifests: images.map(({ name, manifest }) => ({
      ...manifest,
      platform: { architecture, os: 'linux' },
      annotations: {
        'org.opencontainers.image.ref.name': name,
        'io.containerd.image.name': `docker.io/library/${name}`,
      },
    })),
  };
  const saved = images.map(({ name, config, layers }) => ({
    Config: file(config),
    RepoTags: [name],
    Layers: layers.map(({ blob }) => file(blob)),
  }));
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index));
  writeFileSync(join(layout, 'manifest.json'), JSON.stringify(saved));
}

/** A tar whose bytes depend on the files alone. */
const packed = (directory: string, ...entries: readonly string[]): Buffer =>
  execFileSync('tar', ['--create', ...SAME_BYTES, '-C', directory, ...entries], { maxBuffer: 2 ** 30 });

/** The libraries from Debian's packages for an architecture, from the mirror of this machine; and the user of the images. */
function baseTree(
  place: string,
  architecture: string,
): { readonly tree: string; readonly materials: readonly Material[] } {
  const [tree, lists, archives] = ['base', 'lists', 'archives'].map((name) => join(place, name)) as [
    string,
    string,
    string,
  ];
  for (const directory of [tree, lists, archives]) mkdirSync(directory, { recursive: true });
  const options = [
    `Dir::State::lists=${lists}`,
    `Dir::Cache=${place}`,
    'Dir::State::status=/dev/null',
    'Debug::NoLocking=1',
    'APT::Sandbox::User=',
    `APT::Architecture=${architecture}`,
    `APT::Architectures=${architecture}`,
  ].flatMap((option) => ['-o', option]);
  for (const args of [['update'], ['download', ...BASE]])
    execFileSync('apt-get', ['-q', ...options, ...args], { cwd: archives, stdio: ['ignore', 'ignore', 'inherit'] });
  // One /usr, as Debian has had it since release 12; its packages still name /lib.
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(join(tree, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(tree, name));
  }
  const packages = readdirSync(archives).sort();
  for (const name of packages) {
    const files = execFileSync('dpkg-deb', ['--fsys-tarfile', join(archives, name)], { maxBuffer: 2 ** 30 });
    execFileSync('tar', ['--extract', '--keep-directory-symlink', '-C', tree], { input: files });
  }
  for (const name of UNUSED_OF_BASE) rmSync(join(tree, name), { recursive: true, force: true });
  writeFileSync(join(tree, 'etc/passwd'), 'root:x:0:0::/root:/bin/false\nnonroot:x:65532:65532::/:/bin/false\n');
  writeFileSync(join(tree, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n');
  for (const name of ['etc/passwd', 'etc/group']) chmodSync(join(tree, name), 0o644);
  mkdirSync(join(tree, 'tmp'), { recursive: true });
  chmodSync(join(tree, 'tmp'), 0o1777);
  chmodSync(tree, 0o755);
  const materials = packages.map((name) => ({ name, sha256: sha256(readFileSync(join(archives, name))) }));
  for (const directory of [lists, archives]) rmSync(directory, { recursive: true });
  return { tree, materials };
}

function runtimeTree(input: ImagesInput, tree: string): string {
  copyDependencies(input, join(tree, 'app'));
  mkdirSync(join(tree, 'usr/local/bin'), { recursive: true });
  cpSync(join(input.nodePackage, 'bin/node'), join(tree, 'usr/local/bin/node'));
  settle(tree);
  chmodSync(join(tree, 'usr/local/bin/node'), 0o755);
  return tree;
}

/** Everything that more than one service loads. */
function sharedTree({ root, stage }: ImagesInput, tree: string): string {
  const app = join(tree, 'app');
  mkdirSync(app, { recursive: true });
  cpSync(join(stage, 'package.json'), join(app, 'package.json'));
  cpSync(join(stage, 'libs'), join(app, 'libs'), { recursive: true });
  for (const name of ['cli', 'simcloud']) rmSync(join(app, 'libs', name), { recursive: true });
  for (const name of ['init.mjs', 'health.mjs']) cpSync(join(root, 'deploy/images', name), join(app, name));
  settle(tree);
  return tree;
}

function targetTree({ root, stage }: ImagesInput, tree: string, parts: readonly string[]): string {
  for (const part of parts) {
    mkdirSync(dirname(join(tree, 'app', part)), { recursive: true });
    cpSync(join(stage, part), join(tree, 'app', part), { recursive: true });
  }
  const command = 'usr/local/bin/kronos';
  if (parts.includes('libs/cli')) {
    mkdirSync(join(tree, 'usr/local/bin'), { recursive: true });
    const text = readFileSync(join(root, 'deploy/images/kronos'), 'utf8');
    writeFileSync(join(tree, command), text.replace('/src/main.ts', '/src/main.js'));
  }
  settle(tree);
  if (parts.includes('libs/cli')) chmodSync(join(tree, command), 0o755);
  return tree;
}

/** Modes that do not depend on the machine. */
function settle(tree: string): void {
  chmodSync(tree, 0o755);
  for (const entry of readdirSync(tree, { recursive: true, withFileTypes: true }))
    if (!entry.isSymbolicLink()) chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
}
