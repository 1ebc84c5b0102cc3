/**
 * The commands of deploy/helm/README.md, to a first plan. No Kubernetes is here: the chart is rendered, and the container of
 * each pod is a process with the pod's arguments, environment, configuration and secrets, against NATS with accounts.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  cacheDir,
  findNatsServer,
  freePorts,
  type NatsServer,
  onPath,
  startNatsServer,
} from '@kronos/eventlog/testing';
import { demoCloud, demoPolicies, type Sim, startSim } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { endProcess } from '../../libs/cli/src/demo/installation.ts';
import { root } from './files.ts';
import { transcript } from './transcript.ts';

const run = promisify(execFile);
const helm = onPath('helm', process.env, [join(cacheDir(), 'gobin')]);
if (helm === null) console.warn('skipped: there is no helm; with Go, `node scripts/goTools.mjs` builds it');

const read = (path: string) => readFileSync(join(root, path), 'utf8');
/** The commands of the page: those that prepare, and those that install and look. */
const [prepare = '', start = ''] = [...read('deploy/helm/README.md').matchAll(/^ +```\n(.*?)^ +```$/gms)].map(
  ([, block = '']) => block.replaceAll(/^ {3}/gm, ''),
);
const main = join(root, 'libs/cli/src/main.ts');
const SERVICES = ['scorer', 'planner', 'executor', 'ledger'];

type Volume = {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string };
};
type Container = {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
};
type Resource = {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template?: { readonly spec: { readonly containers: readonly Container[]; readonly volumes: Volume[] } };
  };
};

/** The deployments and jobs of a chart, by name, each with its one container. */
const podsOf = (resources: readonly Resource[]) =>
  resources.flatMap(({ metadata, spec }) => {
    const { containers: [container] = [], volumes = [] } = spec?.template?.spec ?? {};
    return container === undefined ? [] : [{ name: metadata.name, container, volumes }];
  });

describe.skipIf(helm === null)('the chart, by the commands of deploy/helm/README.md', () => {
  let directory = '';
  let sim: Sim;
  let nats: NatsServer;
  let resources: Resource[] = [];
  const running: ChildProcess[] = [];
  /** Each pod has an address of its own; the processes here share one. */
  const ports: Record<string, string> = {};
  /** Name of a secret -> its directory of files. */
  const secrets = new Map<string, string>();
  const bash = async (script: string) => {
    const env = { ...process.env, PATH: `${join(directory, 'bin')}:${process.env.PATH ?? ''}` };
    return (await run('bash', ['-ec', script], { cwd: directory, env })).stdout;
  };

  /** The `kubectl create secret` of a script, and what its other commands print. */
  async function prepared(script: string): Promise<string> {
    const said = await bash(`kubectl() { echo "kubectl $*" >> calls; }\n${script}`);
    for (const call of readFileSync(join(directory, 'calls'), 'utf8').trim().split('\n')) {
      const [, name = '', key = '', from = ''] = / secret generic (\S+) .*--from-file=(\w+)=(\S+)/.exec(call) ?? [];
      if (name === '') continue;
      mkdirSync(join(directory, 'secrets', name), { recursive: true });
      writeFileSync(join(directory, 'secrets', name, key), readFileSync(join(directory, from)));
      secrets.set(name, join(directory, 'secrets', name));
    }
    return said;
  }

  /** Where the files of a volume are. @throws when the chart mounts what nobody made */
  function placeOf({ name, configMap, secret }: Volume): string {
    if (secret !== undefined) {
      const place = secrets.get(secret.secretName);
      if (place === undefined) throw new Error(`the page makes no secret ${secret.secretName}`);
      return place;
    }
    const map = resources.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap?.name);
    if (map?.data === undefined) throw new Error(`there is no ConfigMap for the volume ${name}`);
    const place = join(directory, 'maps', map.metadata.name);
    mkdirSync(place, { recursive: true });
    for (const [file, text] of Object.entries(map.data))
      writeFileSync(join(place, file), text.replaceAll('/etc/kronos/', `${place}/`));
    return place;
  }

  /** The arguments and the environment of a pod's container, with the places of its volumes for the paths where they are mounted. */
  function commandOf(
    name: string,
    args?: readonly string[],
  ): { readonly args: string[]; readonly env: NodeJS.ProcessEnv } {
    const pod = podsOf(resources).find((each) => each.name === name);
    if (pod === undefined) throw new Error(`the chart has no ${name}`);
    const mounts = pod.container.volumeMounts.flatMap(({ name: volume, mountPath }) => {
      const found = pod.volumes.find((each) => each.name === volume);
      return found === undefined || (found.configMap ?? found.secret) === undefined
        ? []
        : [[mountPath, placeOf(found)]];
    });
    const here = (text: string): string =>
      mounts.reduce(
        (path, [mount = '', place = '']) => (path.startsWith(`${mount}/`) ? path.replace(mount, place) : path),
        text,
      );
    const env = Object.fromEntries(pod.container.env.map((each) => [each.name, here(each.value)]));
    // What stands at its own place in the images.
    const files = { OS_ENGINE__POLICIES_FILE: here('/etc/kronos/policies.yaml') };
    const { name: service } = pod.container;
    const own = args ?? [...(SERVICES.includes(service) ? [service] : []), ...(pod.container.args ?? [])];
    return {
      args: [main, ...own, '--config', here('/etc/kronos/kronos.conf')],
      env: { ...process.env, ...env, ...files, ...ports },
    };
  }

  /** What `helm install` does: first the job, then the deployments. */
  async function install(command: string): Promise<string> {
    const [, chart = '', rest = ''] = /^helm install kronos (\S+) (.*)$/.exec(command) ?? [];
    const args = ['template', 'kronos', join(root, chart), ...rest.split(' '), '--kube-version', '1.29.6'];
    const { stdout } = await run(helm ?? '', args, { cwd: directory, maxBuffer: 2 ** 24 });
    resources = parseAllDocuments(stdout).map((document) => document.toJS() as Resource);
    const job = commandOf('kronos-provision');
    const provisioned = await run(process.execPath, job.args, { env: job.env });
    for (const service of SERVICES) {
      const { args: own, env } = commandOf(`kronos-${service}`);
      const log = openSync(join(directory, `${service}.log`), 'w');
      running.push(spawn(process.execPath, own, { env, stdio: ['ignore', log, log] }));
      closeSync(log);
    }
    return provisioned.stdout;
  }

  const answer = (args: string[], env: NodeJS.ProcessEnv) =>
    run(process.execPath, args, { env }).then(
      ({ stdout }) => stdout,
      (error: { stdout: string; stderr: string }) => {
        const logs = SERVICES.map((service) => readFileSync(join(directory, `${service}.log`), 'utf8').slice(-2000));
        throw new Error([error.stdout, error.stderr, ...logs].join('\n'), { cause: error });
      },
    );

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-chart-'));
    mkdirSync(join(directory, 'bin'));
    const launcher = join(root, 'libs/cli/bin/kronos.js');
    writeFileSync(join(directory, 'bin/kronos'), `#!/bin/sh\nexec "${process.execPath}" "${launcher}" "$@"\n`, {
      mode: 0o755,
    });
    // The accounts that deploy/openstack/users makes.
    sim = await startSim({
      scenario: {
        ...demoCloud(),
        users: [
          { name: 'kronos-scorer', password: 'of the scorer', roles: ['admin'], project: 'kronos' },
          { name: 'kronos-executor', password: 'of the executor', roles: ['admin'], project: 'kronos' },
        ],
        applicationCredentials: [{ id: 'c1', name: 'kronos', secret: 'of the credential', user: 'kronos-executor' }],
      },
      speed: 10,
    });
    writeFileSync(join(directory, 'scorer.password'), 'of the scorer');
    writeFileSync(join(directory, 'executor.secret'), 'of the credential');
  });
  afterAll(async () => {
    await Promise.all(running.map(endProcess));
    await nats?.stop();
    await sim?.close();
    if (directory !== '') rmSync(directory, { recursive: true, force: true });
  });

  it('from the keys to a plan that moves nothing', async () => {
    const said = transcript(directory);
    await said.typed(prepare, () => prepared(prepare));
    const keys = readFileSync(join(directory, 'keys/nats.env'), 'utf8').trim().split('\n');
    nats = await startNatsServer({
      server: await findNatsServer('newest'),
      config: read('deploy/nats/accounts-nkeys.conf'),
      jetstream: 'sync_interval: always',
      env: Object.fromEntries(keys.map((line) => line.split('='))),
    });

    const trial = parse(read('deploy/helm/examples/trial.yaml')) as { config: { kronosConf: string }; nats: object };
    const values = {
      ...trial,
      config: {
        kronosConf: trial.config.kronosConf
          .replace(/^auth_url = .*$/m, `auth_url = ${sim.urls.identity}`)
          .replace(/^url = .*$/m, `url = ${sim.urls.prometheus}`),
        policies: demoPolicies,
      },
      nats: { ...trial.nats, servers: [nats.url] },
      http: { address: '127.0.0.1' },
    };
    writeFileSync(join(directory, 'my-values.yaml'), stringify(values));
    said.wrote('my-values.yaml', stringify(values));
    for (const [i, port] of (await freePorts(SERVICES.length)).entries())
      ports[`OS_HTTP__${SERVICES[i]?.toUpperCase()}_PORT`] = `${port}`;

    const [installation = '', ...looks] = start.trim().split('\n');
    expect(await said.typed(installation, () => install(installation))).toContain('KRONOS_LOG');
    const answers: string[] = [];
    for (const look of looks) {
      const [, pod = '', words = ''] = /deployment\/(\S+) -- kronos (.*)$/.exec(look) ?? [];
      const { args, env } = commandOf(pod, words.split(' '));
      answers.push(await said.typed(look, () => answer(args, env)));
    }
    const [status, evaluated, plan] = answers;
    expect(status).toContain('all is well');
    expect(evaluated).toMatch(/^general: planned \(\d+ moves?, dry run\)/m);
    expect(plan).toMatch(/dry run +The move lowers the combined imbalance/);
    expect(nats.logText()).not.toMatch(/Violation/);
    said.write({ name: 'helm', title: 'From the chart to the first plan', how: 'npm run test:release -- helm' });
  });
});
