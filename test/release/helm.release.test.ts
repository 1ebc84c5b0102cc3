/** The commands of deploy/helm/README.md on a Kubernetes of one node, to a first plan, and what people do afterwards. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { until } from '@kronos/clock/testing';
import { cacheDir, findNatsServer, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { demoPolicies, type Sim, startSim } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';
import { helm, operatorResources, render, variants } from '../deploy/chart.ts';
import { cloudWithAccounts, credentialSecret, scorerPassword } from './accounts.ts';
import { architecture, releaseFiles, root, version } from './files.ts';
import { type Kubernetes, noKubernetes, startKubernetes } from './kubernetes.ts';
import { transcript } from './transcript.ts';

const run = promisify(execFile);
const MINUTE = 60_000;
const none =
  helm === null
    ? 'there is no helm; with Go, `node scripts/run.mjs node scripts/goTools.ts` builds it'
    : noKubernetes();
if (none !== null) console.warn(`skipped: the chart is not installed; ${none}`);

const read = (path: string) => readFileSync(join(root, path), 'utf8');
/** The commands of the page: those that prepare, those that install and look, and the upgrade. */
const [prepare = '', start = ''] = [...read('deploy/helm/README.md').matchAll(/^ +```\n(.*?)^ +```$/gms)].map(
  ([, block = '']) => block.replaceAll(/^ {3}/gm, ''),
);
const [upgrade = ''] = /helm upgrade kronos [^`]*/.exec(read('deploy/helm/README.md')) ?? [];

describe.skipIf(none !== null)('the chart on a Kubernetes, by the commands of deploy/helm/README.md', () => {
  let directory = '';
  let kubernetes: Kubernetes;
  let sim: Sim;
  let nats: NatsServer;
  const running: ChildProcess[] = [];
  const bash = async (script: string): Promise<string> => {
    const places = [join(directory, 'bin'), join(cacheDir(), 'gobin'), kubernetes.env.PATH ?? ''];
    const env = { ...kubernetes.env, PATH: places.join(delimiter) };
    try {
      return (await run('bash', ['-ec', script], { cwd: directory, env, maxBuffer: 2 ** 24 })).stdout;
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      const look = `kubectl get pods -n kronos -o wide; kubectl get events -n kronos | tail -30
        for pod in $(kubectl get pods -n kronos -o name); do echo $pod; kubectl logs -n kronos --tail 20 $pod; done`;
      const seen = await run('bash', ['-c', `{ ${look}; } 2>&1`], { env }).catch(String);
      throw new Error([script, stdout, stderr, typeof seen === 'string' ? seen : seen.stdout].join('\n'), {
        cause: error,
      });
    }
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-chart-'));
    for (const made of ['bin', 'node', 'archive']) mkdirSync(join(directory, made));
    symlinkSync(join(root, 'deploy'), join(directory, 'deploy'));
    const launcher = join(root, 'libs/cli/bin/kronos.js');
    writeFileSync(join(directory, 'bin/kronos'), `#!/bin/sh\nexec "${process.execPath}" "${launcher}" "$@"\n`, {
      mode: 0o755,
    });
    const images = join(releaseFiles(), `kronos-images-${version}-${architecture}.oci.tar`);
    kubernetes = await startKubernetes(join(directory, 'node'), images);
    sim = await startSim({ scenario: cloudWithAccounts(), speed: 10, host: kubernetes.address });
    writeFileSync(join(directory, 'scorer.password'), scorerPassword);
    writeFileSync(join(directory, 'executor.secret'), credentialSecret);
  });
  afterAll(async () => {
    await Promise.all(running.map(endProcess));
    await kubernetes?.stop();
    await nats?.stop();
    await sim?.close();
    if (directory !== '') rmSync(directory, { recursive: true, force: true });
  });

  it('from the keys to a plan that moves nothing', async () => {
    const said = transcript(directory);
    await said.typed(prepare, () => bash(prepare));
    // The strictest level that Kubernetes has for pods.
    await bash('kubectl label namespace kronos pod-security.kubernetes.io/enforce=restricted');
    const keys = readFileSync(join(directory, 'keys/nats.env'), 'utf8').trim().split('\n');
    nats = await startNatsServer({
      server: await findNatsServer('newest'),
      node: { address: kubernetes.address },
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
    };
    writeFileSync(join(directory, 'my-values.yaml'), stringify(values));
    said.wrote('my-values.yaml', stringify(values));

    const [installation = '', ...looks] = start.trim().split('\n');
    expect(await said.typed(installation, () => bash(installation))).toContain('STATUS: deployed');
    const answers: string[] = [];
    for (const look of looks) answers.push(await said.typed(look, () => bash(look)));
    const [check, status, evaluated, plan] = answers;
    expect(check).toMatch(/^ok +aggregate general: /m);
    expect(status).toContain('all is well');
    expect(evaluated).toMatch(/^general: planned \(\d+ moves?, dry run\)/m);
    expect(plan).toMatch(/dry run +The move lowers the combined imbalance/);
    expect(nats.logText()).not.toMatch(/Violation/);
    said.write({ name: 'helm', title: 'From the chart to the first plan', how: 'npm run test:release -- helm' });
  });

  it('the commands that the chart names after its installation work: a check of the configuration, and the console', async () => {
    const notes = await bash('helm get notes kronos --namespace kronos');
    const commands = [...notes.matchAll(/^ +((?:helm|kubectl) .*)$/gm)].map(([, command = '']) => command);
    expect(commands).toHaveLength(3);
    const [check = '', status = '', forward = ''] = commands;
    expect(await bash(check)).toContain('Phase:          Succeeded');
    expect(await bash(status)).toContain('all is well');
    const [, ...args] = forward.replace('9784:http', ':http').split(' ');
    const forwarding = spawn('kubectl', args, { env: kubernetes.env, stdio: ['ignore', 'pipe', 'inherit'] });
    running.push(forwarding);
    let said = '';
    forwarding.stdout.on('data', (text: Buffer) => {
      said += text.toString();
    });
    const port = await until(() => /127\.0\.0\.1:(\d+) ->/.exec(said)?.[1]);
    const page = await fetch(`http://127.0.0.1:${port}/`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Kronos')]);
  });

  it('the API server takes each choice of the chart', async () => {
    for (const file of Object.values(await operatorResources())) await bash(`kubectl apply --server-side -f ${file}`);
    await bash('kubectl wait --for=condition=Established crd --all');
    // Not that of the installation: fields of a pod that is there do not change.
    await bash('kubectl create namespace choices');
    await bash('kubectl label namespace choices pod-security.kubernetes.io/enforce=restricted');
    // A dry run makes no account, and admission asks for that of a pod.
    for (const account of ['kronos', 'cloud-balancer'])
      await bash(`kubectl create serviceaccount ${account} -n choices`);
    for (const [name, settings] of Object.entries(variants)) {
      const choice = await render(settings);
      writeFileSync(join(directory, 'choice.yaml'), choice);
      const taken = await bash('kubectl apply --server-side --dry-run=server -n choices -f choice.yaml');
      expect(taken.trim().split('\n'), name).toHaveLength(choice.match(/^kind: /gm)?.length ?? 0);
    }
  });

  it('an upgrade rolls to more replicas and an archive on a volume, and back again', {
    timeout: 30 * MINUTE,
  }, async () => {
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'archive' },
      spec: {
        capacity: { storage: '20Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'local',
        local: { path: join(directory, 'archive') },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['node'] }] },
            ],
          },
        },
      },
    };
    writeFileSync(join(directory, 'volume.yaml'), stringify(volume));
    const replicas = { scorer: 2, planner: 2, executor: 3 };
    const more = [
      ...Object.entries(replicas).map(([service, count]) => `${service}.replicas=${count}`),
      // All of them have room on one node of two cores, also while old and new pods run.
      ...Object.keys(replicas).map((service) => `${service}.resources.requests.cpu=10m`),
      'ledger.archive.enabled=true,ledger.archive.storageClass=local',
    ];
    await bash(`kubectl apply -f volume.yaml; ${upgrade} --wait --timeout 15m --set ${more.join(',')}`);
    const ready = async () =>
      (await bash(`kubectl get deployments -n kronos -o jsonpath='{.items[*].status.readyReplicas}'`)).split(' ');
    // executor, ledger, planner, scorer, tools. Old replicas count until they are told to end, which Helm does not await.
    const awaitReady = (...counts: string[]) =>
      until(async () => isDeepStrictEqual(await ready(), counts), 5 * MINUTE, `ready: ${counts}`, 1000);
    await awaitReady('3', '1', '2', '2', '1');
    const status = 'kubectl exec --namespace kronos deployment/kronos-tools -- kronos status';
    await until(async () => (await bash(status)).match(/ ready/g)?.length === 8, 5 * MINUTE, 'eight services', 1000);
    await until(() => readdirSync(join(directory, 'archive')).length > 0, MINUTE, 'files of the archive');
    // With a configuration that the new version refuses, the old services run on.
    const refused = `${upgrade} --timeout 20s --set config.kronosConf='[engine]\nbogus = 1'`;
    await expect(bash(refused)).rejects.toThrow(/pre-upgrade hooks failed/);
    const log = () => bash('kubectl logs --namespace kronos job/kronos-provision').catch(String);
    await until(async () => (await log()).includes('bogus'), 5 * MINUTE, log, 1000);
    expect(await ready()).toEqual(['3', '1', '2', '2', '1']);
    await bash('helm rollback kronos 1 --namespace kronos --wait');
    await awaitReady('1', '1', '1', '1', '1');
    expect(await bash(`${status} --wait 2m`)).toContain('all is well');
    expect(nats.logText()).not.toMatch(/Violation/);
  });
});
