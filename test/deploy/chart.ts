/** The chart as Helm renders it, and what it needs of others, for tests. */
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheDir, onPath } from '@kronos/eventlog/testing';

const run = promisify(execFile);
const directory = fileURLToPath(new URL('../../deploy/helm', import.meta.url));
/** The oldest version that the chart allows. It refuses fields that newer versions have added. */
export const OLDEST = 'v1.29.6';
/** The operator whose PodMonitor and PrometheusRule the chart contains. */
const OPERATOR = 'v0.85.0';

export const go: string | null = onPath('go', process.env, ['/usr/local/go/bin']);
export const helm: string | null = onPath('helm', process.env, [join(cacheDir(), 'gobin')]);

/** The directory of a Go module, downloaded. */
export async function moduleDir(module: string): Promise<string> {
  const options = { cwd: tmpdir(), timeout: 300_000, maxBuffer: 2 ** 24 };
  const { stdout } = await run(go ?? '', ['mod', 'download', '-json', module], options);
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

/** The definitions of the resources of the Prometheus operator: kind, in lower case -> file. */
export async function operatorResources(): Promise<Readonly<Record<string, string>>> {
  const module = await moduleDir(`github.com/prometheus-operator/prometheus-operator@${OPERATOR}`);
  const file = (kind: string) => join(module, 'example/prometheus-operator-crd', `monitoring.coreos.com_${kind}s.yaml`);
  return Object.fromEntries(['podmonitor', 'prometheusrule'].map((kind) => [kind, file(kind)]));
}

export const example = (name: string): string => join(directory, 'examples', `${name}.yaml`);

/** Values that use every option of the chart at least once. */
export const variants: Record<string, string[]> = {
  'as it is': [],
  'with everything': [
    ...['image.registry=registry.example.org/kronos', 'image.pullSecrets={pull}', 'openstack.caSecret=ca'],
    ...['telemetry.otlpEndpoint=http://otel:4318', 'ledger.archive.enabled=true', 'ledger.archive.storageClass=ssd'],
    ...['podLabels.team=cloud', 'podAnnotations.note=x', 'nodeSelector.role=control', 'serviceAccount.annotations.a=b'],
    ...[
      'tolerations[0].key=control',
      'tolerations[0].operator=Exists',
      'networkPolicy.egress.telemetry[0].cidr=10.0.0.0/8',
    ],
  ],
  'an executor per aggregate': [
    ...['executor.perAggregate[0].name=gpu', 'executor.perAggregate[0].aggregates={gpu,large memory}'],
    ...['executor.perAggregate[1].name=rest', 'executor.perAggregate[1].unassigned=true'],
  ],
  'with little': [
    ...['tools.enabled=false', 'provision.enabled=false', 'networkPolicy.enabled=false', 'nats.caSecret='],
    ...['podDisruptionBudget.enabled=false', 'scorer.replicas=1'],
  ],
  'under another name': ['nameOverride=balancer', 'fullnameOverride=cloud-balancer'],
  'as the example for production': ['--values', example('production')],
  'as the example for OpenStack-Helm': ['--values', example('openstack-helm')],
  'as the example for a trial': ['--values', example('trial')],
};

/** The chart as YAML documents. */
export async function render(settings: readonly string[], version: string = OLDEST): Promise<string> {
  const set = settings[0] === '--values' ? settings : settings.flatMap((setting) => ['--set', setting]);
  const chart = join(directory, 'kronos');
  const args = ['template', 'kronos', chart, '--kube-version', version, '--namespace', 'kronos', ...set];
  return (await run(helm ?? '', args, { maxBuffer: 2 ** 24 })).stdout;
}
