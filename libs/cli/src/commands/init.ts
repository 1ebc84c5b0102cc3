import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadConfig } from '@kronos/config';
import { cloudNames, cloudsFile, openCloud, openPrometheus } from '@kronos/connect';
import { hostNamesOf, indexServers, vmNamesOf } from '@kronos/observation';
import type { HostNames, Prometheus, VmNames } from '@kronos/prometheus';
import { check } from '../check/check.ts';
import type { CheckFinding } from '../check/finding.ts';
import { UsageError } from '../errors.ts';
import { configText } from '../init/configText.ts';
import { hostExporters, recognise, vmExporters } from '../init/exporters.ts';
import { allocationPolicies, type ProposalSources, policiesText, proposePolicies } from '../init/propose.ts';
import { proposeScope } from '../init/scope.ts';
import { hostLabels, vmLabels } from '../labels.ts';
import type { Shell } from '../shell.ts';
import { renderFinding, verdict } from './config.ts';

export type InitOptions = {
  readonly cloud?: string;
  readonly cloudsFile?: string;
  readonly region?: string;
  readonly prometheus?: string;
  readonly prometheusAuth?: string;
  readonly prometheusHeader?: readonly string[];
  readonly prometheusTokenFile?: string;
  readonly prometheusUser?: string;
  readonly prometheusPasswordFile?: string;
  readonly prometheusCa?: string;
  readonly nats: string;
  readonly to: string;
  readonly force?: boolean;
};

/** The clouds.yaml that was given, or that this command finds. */
function fileOfCloud({ cloudsFile: given }: InitOptions, env: Shell['env']): string | null {
  const file = given ?? cloudsFile({ env });
  return file === undefined ? null : resolve(file);
}

/** Names the clouds that a person can choose from. */
function noCloud(file: string | null): UsageError {
  const has = file === null ? null : cloudNames(file);
  const found =
    has === null ? 'There is no clouds.yaml: name it with --clouds-file.' : `${file} has: ${has.join(', ') || 'none'}.`;
  return new UsageError('no cloud is set', `Add --cloud NAME, or set OS_CLOUD. ${found}`);
}

/** The options of `[prometheus]` that these options give. */
function accessOf(options: InitOptions): string[] {
  const file = (option: string, path: string | undefined): string[] =>
    path === undefined ? [] : [`${option} = ${resolve(path)}`];
  const item = (header: string): string => (header.includes(',') ? `"${header}"` : header);
  const { prometheusAuth: auth, prometheusHeader: headers = [], prometheusUser: user } = options;
  return [
    ...(auth === undefined ? [] : [`auth = ${auth}`]),
    ...(headers.length === 0 ? [] : [`headers = ${headers.map(item).join(', ')}`]),
    ...file('bearer_token_file', options.prometheusTokenFile),
    ...(user === undefined ? [] : [`username = ${user}`]),
    ...file('password_file', options.prometheusPasswordFile),
    ...file('ca_cert', options.prometheusCa),
  ];
}

/** Where both files go. @throws UsageError when one exists and may not be overwritten */
function filesToWrite({ to, force }: InitOptions): Record<'directory' | 'configFile' | 'policiesFile', string> {
  const directory = resolve(to);
  const [configFile, policiesFile] = [join(directory, 'kronos.conf'), join(directory, 'policies.yaml')];
  for (const file of [configFile, policiesFile])
    if (existsSync(file) && force !== true)
      throw new UsageError(`${file} exists: choose another directory with --to, or overwrite it with --force`);
  return { directory, configFile, policiesFile };
}

const regionOf = ({ region = '' }: InitOptions, env: Shell['env']): string | null =>
  region || env.OS_REGION_NAME || null;

/** kronos init: writes a checked configuration for a cloud. */
export async function init(options: InitOptions, shell: Shell): Promise<void> {
  const { terminal, env } = shell;
  const cloud = options.cloud ?? env.OS_CLOUD;
  if (cloud === undefined || cloud === '') throw noCloud(fileOfCloud(options, env));
  const { directory, configFile, policiesFile } = filesToWrite(options);

  const found = {
    cloud,
    // A service has another working directory and home: it would not find the file that this command finds.
    cloudsFile: fileOfCloud(options, env),
    region: regionOf(options, env),
    prometheusUrl: options.prometheus ?? null,
    prometheusAccess: accessOf(options),
    natsUrl: options.nats,
  };
  const draft = configText({
    ...found,
    scope: { aggregates: [], includeUnassigned: true, left: [] },
    policiesFile: null,
  });
  const { config } = loadConfig({ file: configFile, env, role: 'check', readFile: () => draft });
  await using opened = new AsyncDisposableStack();
  const { nova, session } = openCloud(config, env);
  opened.defer(() => session.close());
  terminal.out(`Reading the cloud ${cloud} ...\n`);
  const [aggregates, services, hypervisors, servers] = await Promise.all([
    nova.listAggregates(),
    nova.listServices(),
    nova.listHypervisors(),
    nova.listServers({}),
  ]);
  const types = new Set(config.nova.hypervisorTypes.map((type) => type.toLowerCase()));
  const counted = hypervisors.filter((one) => types.has(one.hypervisorType.toLowerCase()));
  const scope = proposeScope(aggregates, new Set(counted.map((one) => one.service.host)));
  terminal.out(
    `  ${counted.length} hosts, ${servers.length} servers; aggregates: ${scope.aggregates.join(', ') || 'none'}\n`,
  );
  for (const { name, why } of scope.left) terminal.out(`  left out: ${name} (${why})\n`);

  let proposed: string | null = null;
  const prometheus = openPrometheus(config, {}, env);
  if (prometheus !== null) {
    opened.defer(() => prometheus.close());
    terminal.out(`Reading Prometheus ${options.prometheus ?? 'of the catalog'} ...\n`);
    const list = <T>(value: T) => ({ ok: true, value }) as const;
    const hosts = hostNamesOf({ hypervisors: list(counted), services: list(services) });
    proposed = await propose(prometheus, hosts, vmNamesOf(indexServers(servers, [])), (line) =>
      terminal.out(`  ${line}\n`),
    );
  }

  if (proposed === null) terminal.out('  balancing by what is allocated: vCPUs and RAM, from Placement\n');
  const policies =
    proposed ??
    allocationPolicies([
      'Written by kronos init. Every field: kronos config sample --policies.',
      'Balanced by what is allocated in Placement, as Prometheus has no exporter of hosts that Kronos knows.',
    ]);
  mkdirSync(directory, { recursive: true });
  writeFileSync(policiesFile, policies);
  writeFileSync(configFile, configText({ ...found, scope, policiesFile }));
  terminal.out(`Wrote ${configFile} and ${policiesFile}\n\n`);
  await checkWritten(configFile, shell);
}

/** Checks the files as `kronos config check` does, and says what comes next. */
async function checkWritten(configFile: string, { terminal, env }: Shell): Promise<void> {
  const findings: CheckFinding[] = [];
  await check(configFile, env, (finding) => {
    findings.push(finding);
    terminal.out(`${renderFinding(terminal, finding)}\n`);
  });
  terminal.out(`\n${verdict(findings)}\n`);
  terminal.out(
    `Next: kronos up -c ${configFile} runs everything on this machine; for more machines see docs/install.md.
`,
  );
  terminal.out(
    `Or see first what Kronos would have done in the last month: kronos backtest -c ${configFile} --html backtest.html. It only reads.
`,
  );
  // NATS starts in the next step, so only the other findings count.
  process.exitCode = findings.some((one) => one.state === 'failed' && one.code !== 'nats') ? 1 : 0;
}

/** policies.yaml for the exporters that Prometheus scrapes; null when it has none of the hosts. */
async function propose(
  prometheus: Prometheus,
  hosts: readonly HostNames[],
  vms: readonly VmNames[],
  say: (line: string) => void,
): Promise<string | null> {
  const names = new Set(await prometheus.metricNames());
  const [host] = recognise(hostExporters, names);
  if (host === undefined) {
    say('no exporter of hosts recognised (node_exporter)');
    return null;
  }
  const { samples: ofHosts } = await prometheus.instant(host.sample);
  const [hostLabel] = hostLabels(ofHosts, hosts);
  if (hostLabel === undefined) {
    say(`${host.title}: no label names a host of Nova, such as ${hosts[0]?.serviceHost ?? 'compute-1'}`);
    return null;
  }
  say(`${host.title}: label ${hostLabel.label} names ${hostLabel.matched} of ${hosts.length} hosts`);
  let vm: ProposalSources['vm'] = null;
  for (const exporter of recognise(vmExporters, names)) {
    const { samples } = await prometheus.instant(exporter.sample);
    const [choice] = vmLabels(samples, vms);
    if (choice === undefined) {
      say(`${exporter.title}: no label names a VM of Nova`);
      continue;
    }
    say(`${exporter.title}: label ${choice.label} names ${choice.matched} of ${vms.length} VMs (${choice.type})`);
    const [at] = hostLabels(samples, hosts);
    vm = { exporter, label: choice.label, type: choice.type, hostLabel: at?.label ?? null, names };
    break;
  }
  const sources: ProposalSources = { host: { exporter: host, label: hostLabel.label }, vm };
  const imbalance = new Map<string, number | null>();
  for (const { imbalanceQuery } of proposePolicies(sources, () => null)) {
    const { samples } = await prometheus.instant(imbalanceQuery);
    const values = samples.map((sample) => sample.value).filter(Number.isFinite);
    imbalance.set(imbalanceQuery, values.length === 0 ? null : Math.max(...values) - Math.min(...values));
  }
  const policies = proposePolicies(sources, (query) => imbalance.get(query) ?? null);
  return policiesText(policies, [
    'Written by kronos init. Every field: kronos config sample --policies.',
    'To move VMs only under contention, add act_above and trigger_query: deploy/policies/node-exporter+quiet.yaml.',
  ]);
}
