/**
 * Commands that tests use and that Debian's stable releases lack, in the cache where the tests look for them: the nats command
 * (test of docs/nats.md), Docker Compose 2 (test of docs/install.md), helm and kubeconform (test of the chart), nsc (test of
 * deploy/nats/accounts-nsc.sh), servers of NATS between the oldest and the newest that tests run on, and Kubernetes (test of the
 * chart on a node). Debian's development release has some of them; Go builds the others, and these as well where there is no mirror
 * of Debian. Where a command can be had in neither way, this script says why and exits with 0: the test that needs it skips itself
 * with the same reason.
 *
 *     node scripts/run.mjs node scripts/goTools.ts [NAME ...]     default: all that .ci/run needs
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { cacheDir, unpackNewerDebian } from '@kronos/eventlog/testing';

type Tool = {
  readonly module: string;
  /** The directory of the command in the module. Several become a directory of commands. */
  readonly command: string | readonly string[];
  readonly version: string;
  readonly ldflags: string;
  readonly flags?: readonly string[];
  /** The version of the parts that the module keeps below staging/. */
  readonly staging?: string;
  /** Only .ci/nightly needs it. */
  readonly nightly?: boolean;
  /** The package of Debian's development release that has it, and the path of the command in it. */
  readonly debian?: { readonly package: string; readonly path: string };
};

const natsServer = (version: string): Tool => ({
  module: 'github.com/nats-io/nats-server/v2',
  command: '',
  version,
  ldflags: '',
  nightly: true,
});

const TOOLS: Readonly<Record<string, Tool>> = {
  nats: { module: 'github.com/nats-io/natscli', command: 'nats', version: 'v0.3.0', ldflags: '' },
  'docker-compose': {
    module: 'github.com/docker/compose/v2',
    command: 'cmd',
    version: 'v2.40.0',
    ldflags: '-X github.com/docker/compose/v2/internal.Version=v2.40.0',
    debian: { package: 'docker-compose', path: 'usr/libexec/docker/cli-plugins/docker-compose' },
  },
  'nats-server-2.10': natsServer('v2.10.29'),
  'nats-server-2.11': natsServer('v2.11.12'),
  'nats-server-2.12': natsServer('v2.12.4'),
  'nats-server-2.14': natsServer('v2.14.3'),
  nsc: { module: 'github.com/nats-io/nsc/v2', command: '', version: 'v2.11.1', ldflags: '', nightly: true },
  // The tags of Jaeger 2 are no versions to Go; the same commits have tags of Jaeger 1.
  jaeger: {
    module: 'github.com/jaegertracing/jaeger',
    command: 'cmd/jaeger',
    version: 'v1.76.0',
    ldflags: '',
    nightly: true,
  },
  helm: { module: 'helm.sh/helm/v3', command: 'cmd/helm', version: 'v3.19.0', ldflags: '' },
  kubeconform: { module: 'github.com/yannh/kubeconform', command: 'cmd/kubeconform', version: 'v0.7.0', ldflags: '' },
  // A directory: every program of a node, and kubectl. The oldest version that the chart allows.
  kubernetes: {
    module: 'k8s.io/kubernetes',
    command: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kubectl'].map(
      (name) => `cmd/${name}`,
    ),
    version: 'v1.29.15',
    ldflags: ['gitVersion=v1.29.15', 'gitMajor=1', 'gitMinor=29']
      .map((value) => `-X k8s.io/component-base/version.${value}`)
      .join(' '),
    flags: ['-tags', 'providerless'],
    staging: 'v0.29.15',
    nightly: true,
  },
};
/** More than the largest takes on a busy machine. */
const LONGEST_MS = 3_600_000;

const place = join(cacheDir(), 'gobin');
const go = (args: readonly string[], cwd: string) =>
  spawnSync('go', args, {
    cwd,
    encoding: 'utf8',
    timeout: LONGEST_MS,
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
  });

/**
 * The flags for a module that finds parts of itself in its own repository, below staging/: the same parts are modules of their
 * own, of the version `staging`, and an archive of the module lacks them. Go checks what it downloads against its sums.
 */
function publishedParts(directory: string, staging: string, draft: string): string[] {
  const file = join(draft, 'published.mod');
  const own = readFileSync(join(directory, 'go.mod'), 'utf8');
  writeFileSync(file, own.replaceAll(/=> \.\/staging\/src\/(\S+)/g, `=> $1 ${staging}`));
  writeFileSync(join(draft, 'published.sum'), readFileSync(join(directory, 'go.sum')));
  return ['-mod=mod', `-modfile=${file}`];
}

/** Takes the command from Debian's development release; null where there is none to take, or it does not run here. */
async function fromDebian(name: string, { debian }: Tool): Promise<string | null> {
  if (debian === undefined) return null;
  const unpacked = await unpackNewerDebian(process.env, `${name}-newer-debian`, [debian.package]).catch(() => null);
  const found = unpacked === null ? null : join(unpacked, debian.path);
  if (found === null || !existsSync(found)) return null;
  // It may need newer libraries than this machine has.
  if (spawnSync(found, ['version']).status !== 0) return null;
  const draft = mkdtempSync(join(place, 'draft-'));
  copyFileSync(found, join(draft, name));
  renameSync(join(draft, name), join(place, name));
  rmSync(draft, { recursive: true });
  return `took ${name} from Debian: ${join(place, name)}`;
}

/** Builds from the module's own directory: `go install` asks for the list of all versions, and not every module proxy has it. */
function build(name: string, { module, command, version, ldflags, flags = [], staging }: Tool): string {
  if (go(['version'], place).status !== 0) return `skipped: ${name} is not built. There is no Go.`;
  const fetched = go(['mod', 'download', '-json', `${module}@${version}`], place);
  if (fetched.status !== 0) return `skipped: ${name} is not built. go mod download: ${failure(fetched)}`;
  const draft = mkdtempSync(join(place, 'draft-'));
  try {
    const binary = join(draft, name);
    const { Dir } = JSON.parse(fetched.stdout) as { Dir: string };
    const commands = [command].flat().map((path) => `./${path}`);
    if (commands.length > 1) mkdirSync(binary);
    const parts = staging === undefined ? [] : publishedParts(Dir, staging, draft);
    const built = go(['build', ...flags, ...parts, '-ldflags', `-s -w ${ldflags}`, '-o', binary, ...commands], Dir);
    if (built.status !== 0) return `skipped: ${name} is not built. go build: ${failure(built)}`;
    renameSync(binary, join(place, name));
    return `built ${name}: ${join(place, name)}`;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

const failure = ({ stdout, stderr, error }: ReturnType<typeof go>): string =>
  error?.message ?? (stderr.trim() || stdout.trim());

const everyday = Object.keys(TOOLS).filter((name) => TOOLS[name]?.nightly !== true);
const wanted = process.argv.length > 2 ? process.argv.slice(2) : everyday;
mkdirSync(place, { recursive: true });
for (const name of wanted) {
  const tool = TOOLS[name];
  if (tool === undefined) {
    console.error(`goTools: no tool ${name}; choose from ${Object.keys(TOOLS).join(', ')}`);
    process.exit(2);
  }
  const there = join(place, name);
  if (existsSync(there)) console.log(`${name} is there already: ${there}`);
  else console.log((await fromDebian(name, tool)) ?? build(name, tool));
}
