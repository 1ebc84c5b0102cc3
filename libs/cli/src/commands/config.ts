import {
  type Config,
  ConfigError,
  configSample,
  loadConfig,
  policiesSample,
  renderProblem,
  scopeOf,
  storageLimits,
} from '@kronos/config';
import { connectLog, openCloud, openPrometheus } from '@kronos/connect';
import { bucketNames, type Policy, streamNames, UNASSIGNED } from '@kronos/contracts';
import type { Aggregate, ComputeService, Hypervisor } from '@kronos/openstack';
import { judge, matchHosts, type Prometheus, stalenessRange } from '@kronos/prometheus';
import { createLogger, isKronosError } from '@kronos/telemetry';
import type { Command } from 'commander';
import { configFile, withConfig } from '../open.ts';
import type { Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';

/** One thing that was checked. `skipped`: something it needs has failed. */
export type Finding = {
  readonly what: string;
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly text: string;
};

export function configCommands(program: Command, shell: Shell): void {
  const { terminal } = shell;
  const config = program.command('config').description('the configuration: check it, or print a sample of it');

  withConfig(config.command('check'))
    .description('validate both files, then connect to everything and run every query once (also kronos-test-config)')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', '\nExit status: 0 when nothing failed, 1 otherwise.')
    .action(async (options: { config?: string; json?: boolean }) => {
      const findings: Finding[] = [];
      const report = (finding: Finding) => {
        findings.push(finding);
        if (options.json !== true) terminal.out(`${render(terminal, finding)}\n`);
      };
      await check(configFile(shell, options), shell.env, report);
      const failed = findings.filter((f) => f.state === 'failed').length;
      if (options.json === true) terminal.out(`${JSON.stringify({ ok: failed === 0, findings }, null, 2)}\n`);
      else terminal.out(failed === 0 ? '\nAll is well.\n' : `\n${failed} of ${findings.length} checks failed.\n`);
      process.exitCode = failed === 0 ? 0 : 1;
    });

  config
    .command('sample')
    .description('print kronos.conf with every option, its meaning and its default')
    .option('--policies', 'print a sample policies.yaml instead')
    .action((options: { policies?: boolean }) => {
      terminal.out(options.policies === true ? policiesSample() : configSample());
    });
}

function render(terminal: Terminal, { what, state, text }: Finding): string {
  const style = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'dim' } as const;
  const [first = '', ...more] = text.split('\n');
  return [
    `${paint(terminal, style[state], state.padEnd(8))} ${what}: ${first}`,
    ...more.map((l) => `         ${l}`),
  ].join('\n');
}

const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return isKronosError(error) && error.remedy !== undefined ? `${error.message}\n${error.remedy}` : error.message;
};

/** Checks everything that can be checked from here; each finding is reported as soon as it is known. Never throws. */
export async function check(
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  report: (finding: Finding) => void,
): Promise<void> {
  let config: Config;
  let policies: readonly Policy[];
  try {
    ({ config, policies } = loadConfig({ file, env, role: 'check' }));
  } catch (error) {
    const text = error instanceof ConfigError ? error.problems.map(renderProblem).join('\n') : messageOf(error);
    report({ what: 'files', state: 'failed', text });
    return;
  }
  const active = policies.filter((p) => p.enabled);
  const names = active.map((p) => p.name).join(', ');
  report({
    what: 'files',
    state: 'ok',
    text: config.engine.balance
      ? `${active.length} policies in force: ${names}`
      : 'rules only (balance = false): no policies',
  });
  await checkNats(config, report);
  const hosts = await checkCloud(config, env, report);
  await checkPrometheus(config, active, hosts, report);
}

async function checkNats(config: Config, report: (finding: Finding) => void): Promise<void> {
  const what = 'NATS';
  try {
    const log = await connectLog(
      config,
      'cli',
      createLogger({ service: 'cli', version: '', level: 'silent', format: 'json' }),
    );
    try {
      await log.verify({
        streams: Object.values(streamNames),
        buckets: Object.values(bucketNames),
        taskConsumers: scopeOf(config),
        limits: storageLimits(config),
        ackWaitSeconds: config.nats.ackWait,
      });
      report({ what, state: 'ok', text: `nats-server ${log.server.version}, provisioned` });
    } finally {
      await log.close();
    }
  } catch (error) {
    report({ what, state: 'failed', text: messageOf(error) });
  }
}

type HostsByAggregate = ReadonlyMap<
  string,
  { readonly hypervisors: readonly Hypervisor[]; readonly up: readonly string[] }
>;

async function checkCloud(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  report: (finding: Finding) => void,
): Promise<HostsByAggregate | null> {
  let what = 'Keystone';
  try {
    const cloud = openCloud(config, env);
    try {
      await cloud.session.token();
      report({
        what,
        state: 'ok',
        text: `authenticated as ${cloud.session.identity.user} at ${cloud.session.identity.authUrl}`,
      });
      what = 'Nova';
      const versions = await cloud.nova.versions();
      const [aggregates, services, hypervisors] = await Promise.all([
        cloud.nova.listAggregates(),
        cloud.nova.listServices(),
        cloud.nova.listHypervisors(),
      ]);
      report({ what, state: 'ok', text: `microversions up to ${versions.max}, ${hypervisors.length} hypervisors` });
      return checkAggregates(config, aggregates, services, hypervisors, report);
    } finally {
      await cloud.close();
    }
  } catch (error) {
    report({ what, state: 'failed', text: messageOf(error) });
    return null;
  }
}

function checkAggregates(
  config: Config,
  aggregates: readonly Aggregate[],
  services: readonly ComputeService[],
  hypervisors: readonly Hypervisor[],
  report: (finding: Finding) => void,
): HostsByAggregate {
  const types = new Set(config.nova.hypervisorTypes.map((t) => t.toLowerCase()));
  const service = new Map(services.map((s) => [s.host, s]));
  const found = new Map<string, { hypervisors: Hypervisor[]; up: string[] }>();
  const claimed = new Map<string, string[]>();
  const assigned = new Set(aggregates.flatMap((a) => a.hosts));
  for (const name of scopeOf(config)) {
    const what = `aggregate ${name}`;
    const aggregate = aggregates.find((a) => a.name === name);
    if (name !== UNASSIGNED && aggregate === undefined) {
      const near = aggregates
        .map((a) => a.name)
        .sort()
        .join(', ');
      report({
        what,
        state: 'failed',
        text: `Nova has no host aggregate of that name; it has ${near || 'none'}.\nCorrect [engine] aggregates. A renamed aggregate starts anew: its history stays under the old name.`,
      });
      continue;
    }
    const inIt = (host: string) =>
      name === UNASSIGNED ? !assigned.has(host) : aggregate?.hosts.includes(host) === true;
    const all = hypervisors.filter((h) => inIt(h.service.host));
    const counted = all.filter((h) => types.has(h.hypervisorType.toLowerCase()));
    const up = counted.map((h) => h.service.host).filter((h) => service.get(h)?.state === 'up');
    for (const h of counted) claimed.set(h.service.host, [...(claimed.get(h.service.host) ?? []), name]);
    found.set(name, { hypervisors: counted, up });
    const left = all.length - counted.length;
    const text = `${counted.length} hosts, ${up.length} with nova-compute up${left > 0 ? `; ${left} of other hypervisor types do not count` : ''}`;
    if (counted.length === 0)
      report({
        what,
        state: 'failed',
        text: `${text}\nThere is nothing to balance: add hosts, or take it out of [engine] aggregates.`,
      });
    else report({ what, state: up.length < counted.length ? 'warning' : 'ok', text });
  }
  for (const [host, names] of claimed)
    if (names.length > 1)
      report({
        what: `host ${host}`,
        state: 'failed',
        text: `is in the configured aggregates ${names.join(' and ')}: neither is planned until it is in one of them only.`,
      });
  return found;
}

async function checkPrometheus(
  config: Config,
  policies: readonly Policy[],
  hosts: HostsByAggregate | null,
  report: (finding: Finding) => void,
): Promise<void> {
  if (!config.engine.balance) return;
  const prometheus = openPrometheus(config);
  if (prometheus === null) {
    report({ what: 'Prometheus', state: 'failed', text: 'no [prometheus] url is set' });
    return;
  }
  try {
    const info = await prometheus.runtimeInfo();
    report({
      what: 'Prometheus',
      state: 'ok',
      text: `answers at ${config.prometheus.url}${info.startedAt ? `, running since ${info.startedAt}` : ''}`,
    });
    const members = hosts === null ? [] : [...hosts.values()];
    for (const policy of policies) {
      await checkHostQuery(prometheus, config, policy, 'imbalance_query', policy.imbalanceQuery, members, true, report);
      if (policy.capacityQuery !== null)
        await checkHostQuery(prometheus, config, policy, 'capacity_query', policy.capacityQuery, members, true, report);
      if (policy.hostSizeQuery !== null)
        await checkHostQuery(
          prometheus,
          config,
          policy,
          'host_size_query',
          policy.hostSizeQuery,
          members,
          false,
          report,
        );
      await checkVmQuery(prometheus, policy, report);
    }
  } catch (error) {
    report({ what: 'Prometheus', state: 'failed', text: messageOf(error) });
  } finally {
    await prometheus.close();
  }
}

async function checkHostQuery(
  prometheus: Prometheus,
  config: Config,
  policy: Policy,
  field: string,
  query: string,
  members: readonly { readonly hypervisors: readonly Hypervisor[]; readonly up: readonly string[] }[],
  utilisation: boolean,
  report: (finding: Finding) => void,
): Promise<void> {
  const what = `policy ${policy.name} ${field}`;
  try {
    const nowMs = Date.now();
    const stalenessMs = config.prometheus.stalenessThreshold * 1000;
    const [instant, range] = await Promise.all([
      prometheus.instant(query, { timeMs: nowMs }),
      prometheus.range(query, stalenessRange(nowMs, stalenessMs)),
    ]);
    const hypervisors = members.flatMap((m) => m.hypervisors);
    const labels = instant.samples.map((s) => s.labels[policy.hostLabel] ?? '');
    const matches = matchHosts(
      labels.filter((l) => l !== ''),
      hypervisors.map((h) => ({ serviceHost: h.service.host, hypervisorHostname: h.hypervisorHostname })),
    );
    const answer = judge({
      kind: 'host',
      label: policy.hostLabel,
      instant: instant.samples,
      range: range.series,
      nowMs,
      stalenessMs,
      expected: members.flatMap((m) => m.up),
      subjects: matches.byLabel,
    });
    const outside = utilisation ? Object.entries(answer.values).filter(([, v]) => v < 0 || v > 1) : [];
    const lines = [
      `${instant.samples.length} series, ${rangeOf(Object.values(answer.values))}`,
      ...(answer.text === '' ? [] : [answer.text]),
      ...(outside.length > 0 ? [`outside [0,1]: ${outside.map(([h, v]) => `${h} = ${v}`).join(', ')}`] : []),
      ...(answer.missing.length > 0 ? [`hosts without a value: ${answer.missing.join(', ')}`] : []),
      ...(matches.unknown.length > 0 ? [`labels that fit no host in scope: ${some(matches.unknown)}`] : []),
      ...matches.ambiguous.map((a) => `label ${a.label} fits ${a.serviceHosts.join(' and ')}: no data for any of them`),
    ];
    // No value is no good answer, also while the hosts that it should be about are unknown.
    const good = answer.health === 'HEALTHY' && instant.samples.length > 0 && outside.length === 0;
    report({ what, state: good ? 'ok' : 'failed', text: lines.join('\n') });
  } catch (error) {
    report({ what, state: 'failed', text: messageOf(error) });
  }
}

async function checkVmQuery(prometheus: Prometheus, policy: Policy, report: (finding: Finding) => void): Promise<void> {
  const what = `policy ${policy.name} vm_profile_query`;
  try {
    const { samples } = await prometheus.instant(policy.vmProfileQuery, { timeMs: Date.now() });
    const labelled = samples.filter((s) => (s.labels[policy.vmProfileLabel] ?? '') !== '').length;
    const text = `${samples.length} series, ${rangeOf(samples.map((s) => s.value))}`;
    if (samples.length > 0 && labelled === samples.length) report({ what, state: 'ok', text });
    else
      report({
        what,
        state: samples.length === 0 ? 'warning' : 'failed',
        text: `${text}\n${samples.length - labelled} of them have no label ${policy.vmProfileLabel}; VMs without data take the fallback ${policy.vmProfileFallback}.`,
      });
  } catch (error) {
    report({ what, state: 'failed', text: messageOf(error) });
  }
}

const rangeOf = (values: readonly number[]): string =>
  values.length === 0 ? 'no value' : `from ${short(Math.min(...values))} to ${short(Math.max(...values))}`;
const short = (value: number): string => String(Number(value.toPrecision(4)));
const some = (items: readonly string[]): string =>
  items.length <= 5 ? items.join(', ') : `${items.slice(0, 5).join(', ')} and ${items.length - 5} more`;
