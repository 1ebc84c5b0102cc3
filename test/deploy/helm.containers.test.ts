import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheDir, onPath } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { nightly } from '../nightly.ts';
import { example, go, helm, moduleDir, OLDEST, operatorResources, render, variants } from './chart.ts';

const run = promisify(execFile);
/** Every night also one in between, and the newest. A check of all three takes minutes. */
const KUBERNETES = nightly ? [OLDEST, 'v1.34.2', 'v1.36.3'] : [OLDEST];

type Schema = { [key: string]: unknown };

/** Makes a schema refuse unknown fields, as every API server does. */
function refuseUnknown(schema: Schema): void {
  if (schema.properties !== undefined) schema.additionalProperties ??= false;
  for (const part of Object.values(schema))
    if (Array.isArray(part)) for (const one of part) refuseUnknown(Object(one) as Schema);
    else if (typeof part === 'object' && part !== null) refuseUnknown(part as Schema);
}

/** The schemas of one version of Kubernetes, from its API description. They refuse unknown fields. */
async function schemas(version: string, directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const description = join(await moduleDir(`k8s.io/kubernetes@${version}`), 'api/openapi-spec/swagger.json');
  const { definitions } = JSON.parse(readFileSync(description, 'utf8')) as { definitions: Record<string, Schema> };
  for (const [name, definition] of Object.entries(definitions)) {
    if (definition.properties !== undefined) definition.additionalProperties ??= false;
    if (definition.format === 'int-or-string') definitions[name] = { oneOf: [{ type: 'string' }, { type: 'integer' }] };
    if (name.endsWith('.Quantity')) definitions[name] = { oneOf: [{ type: 'string' }, { type: 'number' }] };
  }
  writeFileSync(join(directory, 'definitions.json'), JSON.stringify({ definitions }));
  for (const [name, definition] of Object.entries(definitions)) {
    const kinds = definition['x-kubernetes-group-version-kind'] as { group: string; version: string; kind: string }[];
    for (const { group, version: of, kind } of kinds ?? []) {
      const suffix = [group.split('.')[0], of].filter((part) => part !== '').join('-');
      const file = `${kind.toLowerCase()}-${suffix}.json`;
      writeFileSync(join(directory, file), JSON.stringify({ $ref: `definitions.json#/definitions/${name}` }));
    }
  }
}

/** The schemas of the resources of the Prometheus operator. */
async function operatorSchemas(directory: string): Promise<void> {
  for (const [kind, file] of Object.entries(await operatorResources())) {
    const { spec } = parse(readFileSync(file, 'utf8')) as { spec: { versions: { schema: Schema }[] } };
    const schema = spec.versions[0]?.schema.openAPIV3Schema as Schema;
    refuseUnknown(schema.properties as Schema);
    writeFileSync(join(directory, `${kind}-monitoring-v1.json`), JSON.stringify(schema));
  }
}

const kubeconform = onPath('kubeconform', process.env, [join(cacheDir(), 'gobin')]);
/** The schemas come from a Go module. */
const checksSchemas = kubeconform !== null && go !== null;
if (helm === null)
  console.warn('skipped: there is no helm; with Go, `node scripts/run.mjs node scripts/goTools.ts` builds it');

type Resource = { kind: string; metadata: { name: string }; spec?: Record<string, unknown> };
type Container = Record<string, unknown> & { name: string; image: string; args?: string[]; env?: { name: string }[] };
type PodSpec = { containers: Container[]; securityContext: Schema; automountServiceAccountToken: boolean };

const resources = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Resource);
const pods = (all: Resource[]): [string, PodSpec][] =>
  all.flatMap(({ kind, metadata, spec }) => {
    const template = spec?.template as { spec: PodSpec } | undefined;
    const own = kind === 'Pod' ? (spec as PodSpec) : template?.spec;
    return own === undefined ? [] : [[`${kind} ${metadata.name}`, own] as [string, PodSpec]];
  });

describe.skipIf(helm === null)('the chart', () => {
  let directory = '';
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-helm-'));
    if (!checksSchemas) return;
    await Promise.all(
      KUBERNETES.map(async (version) => {
        await schemas(version, join(directory, version));
        await operatorSchemas(join(directory, version));
      }),
    );
  }, 400_000);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const location = (version: string) => `${join(directory, version)}/{{ .ResourceKind }}{{ .KindSuffix }}.json`;

  it.skipIf(!checksSchemas).each(Object.entries(variants))(
    '%s: Kubernetes would take all of it',
    async (_, settings) => {
      for (const version of KUBERNETES) {
        const text = await render(settings, version);
        const file = join(directory, version, 'rendered.yaml');
        writeFileSync(file, text);
        const args = ['-summary', '-output', 'json', '-schema-location', location(version), file];
        const { stdout } = await run(kubeconform ?? '', args).catch((error: { stdout: string }) => error);
        const { summary, resources: wrong } = JSON.parse(stdout) as {
          summary: Record<string, number>;
          resources: unknown;
        };
        expect(wrong, version).toEqual([]);
        expect(summary.valid, version).toBe(resources(text).length);
      }
    },
  );

  it.each(Object.entries(variants))(
    '%s: every container is nobody, reads only, and may nothing',
    async (_, settings) => {
      const all = pods(resources(await render(settings)));
      expect(all.length).toBeGreaterThanOrEqual(4);
      for (const [name, spec] of all) {
        expect(spec.automountServiceAccountToken, name).toBe(false);
        expect(spec.securityContext, name).toMatchObject({ runAsNonRoot: true, runAsUser: 65532 });
        for (const container of spec.containers) {
          expect(container.securityContext, name).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
          expect(container.resources, name).toMatchObject({
            requests: { cpu: expect.anything() },
            limits: { memory: expect.anything() },
          });
        }
      }
    },
  );

  it('only the scorer, a check in its place, and the executor are given an account of OpenStack, each its own', async () => {
    const accounts = pods(resources(await render([]))).map(([name, spec]) => {
      const secrets = JSON.stringify(spec).match(/kronos-openstack-\w+/g) ?? [];
      return [name, [...new Set(secrets)]] as const;
    });
    expect(Object.fromEntries(accounts.filter(([, secrets]) => secrets.length > 0))).toEqual({
      'Deployment kronos-scorer': ['kronos-openstack-scorer'],
      'Deployment kronos-executor': ['kronos-openstack-executor'],
      'Pod kronos-check': ['kronos-openstack-scorer'],
    });
  });

  it('executors per aggregate are told their aggregates', async () => {
    const all = pods(resources(await render(variants['an executor per aggregate'] ?? [])));
    const args = all
      .filter(([name]) => name.includes('executor'))
      .map(([name, { containers }]) => [name, containers[0]?.args]);
    expect(Object.fromEntries(args)).toEqual({
      'Deployment kronos-executor-gpu': ['--aggregate', 'gpu', '--aggregate', 'large memory'],
      'Deployment kronos-executor-rest': ['--unassigned'],
    });
  });

  it.skipIf(!checksSchemas)('a field that Kubernetes does not know is noticed', async () => {
    const file = join(directory, 'wrong.yaml');
    const check = async (text: string) => {
      writeFileSync(file, text);
      return run(kubeconform ?? '', ['-schema-location', location(OLDEST), file]);
    };
    const wrong = { stdout: expect.stringContaining('bogus') };
    await expect(check(await render(['scorer.resources.bogus.cpu=1']))).rejects.toMatchObject(wrong);
    const rules = await render(['--values', example('production')]);
    await expect(
      check(rules.replaceAll(/^(\s+)runbook_url: .*$/gm, '$1runbook_url: x\n$1bogus: [1]')),
    ).rejects.toMatchObject(wrong);
  });

  it('listens where a network policy decides who may connect, and else on the loopback address only', async () => {
    const listening = async (settings: readonly string[]) =>
      pods(resources(await render(settings)))
        .filter(([name]) => /scorer|planner|executor|ledger/.test(name))
        .map(([, { containers }]) => {
          const [container] = containers;
          const env = (container?.env ?? []) as { name: string; value?: string }[];
          const address = env.find(({ name }) => name === 'OS_HTTP__ADDRESS')?.value;
          return [address, Object.keys(container?.livenessProbe as object).includes('exec')];
        });
    expect(await listening([])).toEqual(Array(4).fill(['0.0.0.0', false]));
    expect(await listening(['networkPolicy.enabled=false'])).toEqual(Array(4).fill(['127.0.0.1', true]));
    const own = ['networkPolicy.enabled=false', 'http.address=0.0.0.0'];
    expect(await listening(own)).toEqual(Array(4).fill(['0.0.0.0', false]));
  });

  it('lets nobody in but Prometheus, until it is told who else may open the console', async () => {
    const ingress = async (settings: readonly string[]) =>
      resources(await render(settings))
        .filter(({ kind }) => kind === 'NetworkPolicy')
        .map(({ metadata, spec }) => [metadata.name, spec?.ingress] as const);
    const scrapers = {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } },
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } },
    };
    const closed = Object.fromEntries(await ingress([]));
    expect(closed['kronos-scorer']).toEqual([{ from: [scrapers], ports: [{ port: 'http', protocol: 'TCP' }] }]);
    expect(closed['kronos-ledger']).toEqual(closed['kronos-scorer']);
    expect(closed['kronos-tools']).toEqual([]);
    const open = Object.fromEntries(await ingress(['networkPolicy.console[0].podSelector.matchLabels.app=proxy']));
    expect(open['kronos-ledger']).toMatchObject([
      { from: [scrapers, { podSelector: { matchLabels: { app: 'proxy' } } }] },
    ]);
    expect(open['kronos-scorer']).toEqual(closed['kronos-scorer']);
  });

  it('refuses what would not work', async () => {
    await expect(render(['ledger.archive.enabled=true', 'ledger.replicas=2'])).rejects.toThrow(/ledger.replicas 1/);
    await expect(render(['executor.perAggregate[0].name=gpu'])).rejects.toThrow(/names no aggregate/);
    const ingress = ['ingress.enabled=true', 'ingress.host=kronos.example.org'];
    await expect(render(ingress)).rejects.toThrow(/networkPolicy.console must name/);
    await expect(render([...ingress, 'networkPolicy.enabled=false'])).rejects.toThrow(/listens on 127.0.0.1/);
    await expect(
      render(['ingress.enabled=true', 'http.address=0.0.0.0', 'networkPolicy.enabled=false']),
    ).rejects.toThrow(/ingress.host: the host name/);
  });

  it.each([
    ['a misspelt value', 'scorer.replica=2', "additional properties 'replica' not allowed"],
    ['a misspelt section', 'scorrer.replicas=2', "additional properties 'scorrer' not allowed"],
    ['a number of replicas that JetStream does not have', 'nats.replicas=2', '/nats/replicas'],
    ['a server without a scheme', 'nats.servers={nats:4222}', '/nats/servers/0'],
    ['no configuration', 'config.kronosConf=', '/config/kronosConf'],
    ['a policy that Kubernetes does not have', 'image.pullPolicy=Sometimes', '/image/pullPolicy'],
  ])('refuses %s by its place', async (_, setting, place) => {
    await expect(render([setting])).rejects.toMatchObject({ stderr: expect.stringContaining(place) });
  });

  it('refuses a Kubernetes that nobody tried', async () => {
    await expect(render([], 'v1.28.9')).rejects.toMatchObject({ stderr: expect.stringContaining('>=1.29') });
  });

  it('names everything as it is told, and selects by the same labels', async () => {
    const all = resources(await render(variants['under another name'] ?? []));
    for (const { kind, metadata } of all) expect(`${kind} ${metadata.name}`).toMatch(/ cloud-balancer/);
    const selectors = all.flatMap(({ spec }) => {
      const { selector, podSelector } = (spec ?? {}) as { selector?: Schema; podSelector?: Schema };
      const labels = (podSelector?.matchLabels ?? selector?.matchLabels ?? selector) as Schema | undefined;
      return labels === undefined ? [] : [labels['app.kubernetes.io/name']];
    });
    expect(selectors.length).toBeGreaterThan(10);
    expect(new Set(selectors)).toEqual(new Set(['balancer']));
  });

  it('an ingress may ask the ledger, and links alerts to the runbook that is published', async () => {
    const text = await render(['--values', example('production')]);
    const ledger = pods(resources(text)).find(([name]) => name === 'Deployment kronos-ledger')?.[1].containers[0];
    const env = (ledger?.env ?? []) as { name: string; value?: string }[];
    expect(env.find(({ name }) => name === 'OS_HTTP__ALLOWED_HOSTS')?.value).toMatch(/,kronos\.example\.org$/);
    expect(text).toContain('https://wiki.example.org/kronos/runbook.md#kronosservicedown');
    expect(text).not.toContain('https://kronos.example.org/docs');
  });
});
