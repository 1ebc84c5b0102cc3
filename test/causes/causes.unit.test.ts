import { readFileSync } from 'node:fs';
import type { Config } from '@kronos/config';
import type { ScenarioInput } from '@kronos/simcloud';
import { type CauseCode, causes } from '@kronos/status/causes';
import { afterEach, describe, expect, it } from 'vitest';
import { asPerson } from '../simulation/simulatedCloud.ts';
import { elsewhere } from './elsewhere.ts';
import { HOSTS, openSite, POLICIES, type Site, type SiteOptions } from './site.ts';

const MINUTE = 60_000;

/** A fault, and the one line that a person must see for it: its code, its sentence and its remedy. */
type Row = {
  readonly fault: string;
  readonly options?: SiteOptions;
  /** The fault. */
  readonly strike?: (site: Site) => void;
  /** A later fault. */
  readonly later?: (site: Site) => void;
  readonly laterMs?: number;
  /** The time until a person looks. */
  readonly afterMs?: number;
  /** All is well nevertheless: the line is a note. */
  readonly note?: true;
  readonly code: CauseCode;
  readonly sees: RegExp;
  readonly does: RegExp;
};

const allSeries = (kind: 'missing' | 'stale' | 'duplicate', metric: string) => (site: Site) =>
  site.act({ act: 'faultSeries', fault: { kind, metric } });

const engine =
  (more: Partial<Config['engine']>) =>
  (config: Config): Config => ({
    ...config,
    engine: { ...config.engine, ...more },
  });
const emptying = engine({ evacuateDisabledHosts: true });
const repairing = engine({ enforceHardAffinity: true });

/** Each host holds as many vCPUs as it may: two VMs of two. */
const withoutRoom = (input: ScenarioInput): ScenarioInput => ({
  ...input,
  hosts: input.hosts.map((host) => ({ ...host, cpuRatio: 0.25 })),
});

/** Room for a dozen decisions. */
const smallLog = (config: Config): Config => ({ ...config, nats: { ...config.nats, logMaxBytes: 20_000 } });
/** Moves that a drain asks for begin at once. */
const moving = (config: Config): Config => emptying(engine({ dryRun: false })(config));

/** Streams on disk: a full disk leaves those in memory alone. */
const ON_DISK = /^(kronos\.(?!services)|\$O\.)/;

const table: readonly Row[] = [
  {
    fault: 'Placement is stopped: its connection is accepted and never answered',
    strike: (site) => site.act({ act: 'faultApi', fault: { api: 'placement', effect: { kind: 'hang' } } }),
    afterMs: 90_000,
    code: 'openstack-unread',
    sees: /^Placement has not answered GET \/allocation_candidates for [\d a-z]+ s$/,
    does: /Restore the named OpenStack API/,
  },
  {
    fault: 'the database of a cell does not answer, so Nova hangs in its list of servers',
    strike: (site) =>
      site.act({ act: 'faultApi', fault: { api: 'compute', path: '/servers/detail', effect: { kind: 'hang' } } }),
    afterMs: 150_000,
    code: 'openstack-unread',
    sees: /^Nova has not answered GET \/servers\/detail for [\d a-z]+ s$/,
    does: /Restore the named OpenStack API/,
  },
  {
    fault: 'Nova answers each call after 12 s',
    strike: (site) => site.act({ act: 'faultApi', fault: { api: 'compute', effect: { kind: 'latency', ms: 12_000 } } }),
    afterMs: 10 * MINUTE,
    code: 'cycle-slow',
    sees: /^a cycle took \d+(\.\d)? s, and one is due every 60 s: cycles are skipped; Nova's list of [a-z ]+ took longest, \d+(\.\d)? s$/,
    does: /Find out why what the text names takes so long/,
  },
  {
    fault: 'Nova does not reach the database of a cell, whose hosts are in another aggregate',
    options: {
      config: (config) => ({ ...config, nova: { ...config.nova, cells: [{ cell: 'far', hosts: 'far*' }] } }),
      scenario: (input) => ({ ...input, hosts: [...input.hosts, { name: 'far1', cell: 'cell2' }] }),
    },
    strike: (site) => site.act({ act: 'setCell', cell: 'cell2', reachable: false }),
    afterMs: 3 * MINUTE,
    code: 'cell-down',
    sees: /^a cell is down: Nova does not reach the database of far \(hosts far1\)$/,
    does: /Repair the database of the cell/,
  },
  {
    fault: 'Nova does not reach the database of the cell, while a host is emptied',
    options: {
      config: moving,
      scenario: (input) => ({
        ...input,
        groups: [{ name: 'apart', policy: 'anti-affinity' }],
        servers: input.servers?.map((one) => (one.name.endsWith('-a') ? { ...one, group: 'apart' } : one)),
      }),
    },
    strike: (site) => site.act({ act: 'setHost', host: 'cmp1', disabled: true }),
    laterMs: 90_000,
    later: (site) => site.act({ act: 'setCell', cell: 'cell1', reachable: false }),
    afterMs: 10 * MINUTE,
    code: 'cell-down',
    sees: /^a cell is down: Nova does not reach the database of the cell of cmp1, cmp2(,| and) cmp3$/,
    does: /Repair the database of the cell/,
  },
  {
    fault: 'Prometheus hangs',
    strike: (site) => site.act({ act: 'faultApi', fault: { api: 'prometheus', effect: { kind: 'hang' } } }),
    afterMs: 100_000,
    code: 'prometheus-unread',
    sees: /^Prometheus has not answered POST \/api\/v1\/query(_range)? for \d+ s$/,
    does: /Restore Prometheus/,
  },
  {
    fault: 'Nova answers 503 with a page of its proxy',
    strike: (site) =>
      site.act({
        act: 'faultApi',
        fault: { api: 'compute', effect: { kind: 'status', status: 503, body: '<html>no server is available</html>' } },
      }),
    afterMs: 3 * MINUTE,
    code: 'openstack-unread',
    sees: /nova answered 503 to GET .*no server is available/,
    does: /Restore the named OpenStack API/,
  },
  {
    fault: 'Nova refuses a fresh token',
    strike: (site) => site.act({ act: 'faultApi', fault: { api: 'compute', effect: { kind: 'unauthorized' } } }),
    afterMs: 2 * MINUTE,
    code: 'openstack-refused',
    sees: /nova refused user admin/,
    does: /Correct the credentials of \[nova\]/,
  },
  {
    fault: 'Prometheus refuses the credentials, and says what it misses',
    strike: (site) =>
      site.act({
        act: 'faultApi',
        fault: { api: 'prometheus', effect: { kind: 'status', status: 401, body: 'no org id' } },
      }),
    afterMs: 2 * MINUTE,
    code: 'prometheus-refused',
    sees: /Prometheus answered 401 .*no org id/,
    does: /Correct the credentials and headers in \[prometheus\]/,
  },
  {
    fault: 'two exporters report each host',
    strike: allSeries('duplicate', 'host_cpu_utilisation'),
    afterMs: 2 * MINUTE,
    code: 'policy-skipped',
    sees: /^it is skipped: cmp1 has 2 series: host_cpu_utilisation\{.*1 more hosts have several series/,
    does: /Select one exporter in the query/,
  },
  {
    fault: 'the exporters of hosts died a minute ago',
    strike: (site) => {
      allSeries('missing', 'host_cpu_utilisation')(site);
      allSeries('missing', 'host_mem_utilisation')(site);
    },
    afterMs: 2 * MINUTE,
    code: 'policy-skipped',
    sees: /^it is skipped: stale hosts: cmp1, cmp2, cmp3/,
    does: /Repair the exporter of these hosts/,
  },
  {
    fault: 'the exporters of hosts died an hour ago',
    strike: (site) => {
      allSeries('missing', 'host_cpu_utilisation')(site);
      allSeries('missing', 'host_mem_utilisation')(site);
    },
    afterMs: 60 * MINUTE,
    code: 'policy-no-host',
    sees: /^Prometheus has no series for its query: no exporter of hosts reports/,
    does: /Look at the scrape targets in Prometheus first/,
  },
  {
    fault: 'a policy names a label that no series has',
    options: { policies: POLICIES.replaceAll('host_label: host', 'host_label: node') },
    code: 'policy-no-host',
    sees: /matches none of 3 hosts: no value of the label "node" is known to Nova; 3 of 3 series lack it/,
    does: /Correct imbalance_query or host_label/,
  },
  {
    fault: 'the query of a policy is no PromQL',
    options: { policies: POLICIES.replace('imbalance_query: host_cpu_utilisation', 'imbalance_query: sum(') },
    code: 'policy-skipped',
    sees: /^it is skipped: Prometheus refused the query "sum\("/,
    does: /Correct the query in policies.yaml/,
  },
  {
    fault: 'a policy of hosts gives percentages',
    options: { policies: POLICIES.replace('host_mem_utilisation', 'host_mem_utilisation * 100') },
    code: 'policy-skipped',
    sees: /^it is skipped: cmp1 has the value [\d.]+, outside \[0,1\]/,
    does: /divide percentages by 100/,
  },
  {
    fault: 'a policy of VMs gives cores instead of a share',
    options: {
      policies: POLICIES.replace('vm_cpu_cores / 16', 'vm_cpu_cores * 4.7'),
    },
    code: 'policy-server-values',
    sees: /^the values of 6 of 6 VMs are outside \[0,1\] \(from 4\.\d+ to 4\.\d+\) and count as missing/,
    does: /share of its host that a VM uses/,
  },
  {
    fault: 'two exporters report each VM',
    strike: allSeries('duplicate', 'vm_cpu_cores'),
    afterMs: 2 * MINUTE,
    code: 'policy-server-values',
    sees: /^6 of 6 VMs have several series each/,
    does: /Select one exporter in vm_profile_query/,
  },
  {
    fault: 'a policy of VMs names a label that no series has',
    options: { policies: POLICIES.replace('vm_profile_label: instance_uuid', 'vm_profile_label: domain') },
    code: 'policy-no-server',
    sees: /^its query matches none of 6 VMs/,
    does: /Correct vm_profile_query/,
  },
  {
    fault: 'every nova-compute is down',
    strike: (site) => site.act(...HOSTS.map((host) => ({ act: 'setHost' as const, host, up: false }))),
    afterMs: 3 * MINUTE,
    code: 'computes-down',
    sees: /^every nova-compute is down \(3 of 3 hosts of compute\): the message bus or nova-conductor/,
    does: /message bus \(RabbitMQ\)/,
  },
  {
    fault: 'one nova-compute is down',
    strike: (site) => site.act({ act: 'setHost', host: 'cmp2', up: false }),
    afterMs: 3 * MINUTE,
    code: 'host-down',
    sees: /^nova-compute is down \(1 of 3 hosts of compute\)/,
    does: /Repair the host/,
  },
  {
    fault:
      'the disk of a nats-server 2.9 is full: what is stored on disk has no answer, heartbeats in memory are stored',
    strike: (site) => {
      site.nats.loses = (subject) => ON_DISK.test(subject);
    },
    afterMs: 5 * MINUTE,
    code: 'append-refused',
    sees: /^NATS does not store: KRONOS_\w+: .*no answer in time/,
    does: /disks and the log of the NATS servers/,
  },
  {
    fault: 'the disk of a newer nats-server is full',
    strike: (site) => {
      const error = { code: 503, err_code: 10077, description: 'write /data/1.blk: no space left on device' };
      site.refuse = (subject) => (ON_DISK.test(subject) ? { error } : null);
    },
    afterMs: 5 * MINUTE,
    code: 'storage-full',
    sees: /^the NATS server is out of storage: .*no space left on device/,
    does: /Free disk space/,
  },
  {
    fault: 'the planner was killed, and nothing starts it again',
    strike: (site) => site.supervisor.kill('planner-1', 60 * MINUTE),
    afterMs: 20 * MINUTE,
    code: 'service-missing',
    sees: /^no instance has sent a heartbeat recently$/,
    does: /^Start it; the last lines of its log show why/,
  },
  {
    fault: 'two VMs on a disabled host are locked',
    options: { config: emptying },
    strike: (site) =>
      site.act(...['a', 'b'].map((letter) => ({ act: 'lockServer' as const, server: `cmp1-${letter}` })), {
        act: 'setHost',
        host: 'cmp1',
        disabled: true,
      }),
    afterMs: 3 * MINUTE,
    code: 'server-stuck',
    sees: /^cmp1-a, cmp1-b cannot leave cmp1: the VM is locked$/,
    does: /openstack server unlock VM/,
  },
  {
    fault: 'no host has room for the VMs of a disabled one',
    options: { config: emptying },
    strike: (site) =>
      site.act(
        { act: 'setHost', host: 'cmp2', full: true },
        { act: 'setHost', host: 'cmp3', full: true },
        { act: 'setHost', host: 'cmp1', disabled: true },
      ),
    afterMs: 3 * MINUTE,
    code: 'server-stuck',
    sees: /^cmp1-\w, cmp1-\w cannot leave cmp1: no host takes it: cmp2 has too little free capacity$/,
    does: /^Make room, enable a host/,
  },
  {
    fault: 'members of a group share a host, and nobody repairs groups',
    strike: (site) =>
      site.act(
        { act: 'createGroup', group: { name: 'database', policy: 'anti-affinity' } },
        { act: 'setGroup', server: 'cmp1-a', group: 'database' },
        { act: 'setGroup', server: 'cmp1-b', group: 'database' },
      ),
    afterMs: 3 * MINUTE,
    note: true,
    code: 'group-broken',
    sees: /^the rule of a server group is broken: anti-affinity group database \(cmp1-a, cmp1-b on cmp1\)$/,
    does: /Set \[engine\] enforce_hard_affinity = true/,
  },
  {
    fault: 'members of a group share a host, and both are locked',
    options: { config: repairing },
    strike: (site) =>
      site.act(
        { act: 'lockServer', server: 'cmp1-a' },
        { act: 'lockServer', server: 'cmp1-b' },
        { act: 'createGroup', group: { name: 'database', policy: 'anti-affinity' } },
        { act: 'setGroup', server: 'cmp1-a', group: 'database' },
        { act: 'setGroup', server: 'cmp1-b', group: 'database' },
      ),
    afterMs: 3 * MINUTE,
    code: 'decision-warning',
    sees: /^no legal move repairs the anti-affinity group database \(cmp1-a, cmp1-b\): cmp1-a, cmp1-b cannot leave cmp1: the VM is locked$/,
    does: /openstack server unlock VM/,
  },
  {
    fault: 'somebody renamed the aggregate',
    strike: (site) => site.act({ act: 'setAggregate', aggregate: 'compute', name: 'renamed' }),
    afterMs: 3 * MINUTE,
    code: 'observation-problem',
    sees: /^Nova has no aggregate "compute"; a renamed one must be renamed in \[engine\] aggregates too$/,
    does: /Resolve the problem/,
  },
  {
    fault: 'every host is disabled',
    strike: (site) => site.act(...HOSTS.map((host) => ({ act: 'setHost' as const, host, disabled: true }))),
    afterMs: 3 * MINUTE,
    code: 'policy-no-destination',
    sees: /^no host is up and enabled$/,
    does: /Enable a host/,
  },
  {
    fault: 'an operator forces a host down',
    strike: (site) => site.act({ act: 'setHost', host: 'cmp2', forcedDown: true }),
    afterMs: 3 * MINUTE,
    code: 'host-down',
    sees: /^nova-compute is forced down \(1 of 3 hosts of compute\)/,
    does: /Repair the host/,
  },
  {
    fault: 'no host has room for the VMs of one that fails',
    options: { config: engine({ failoverHosts: 1 }), scenario: withoutRoom },
    code: 'failover-room',
    sees: /^no room for 3 of 3 failures of one host: without cmp1, 2 of 2 VMs would have no host \(cmp1-a, cmp1-b\)$/,
    does: /Add a host or free room/,
  },
  {
    fault: 'a VM on a disabled host is rescued',
    options: { config: emptying },
    strike: (site) => {
      const { cloud } = site.sim;
      asPerson(site.sim, (nowMs, caller) =>
        cloud.beginStateAction(nowMs, caller, cloud.server('cmp1-a').uuid, 'rescue'),
      );
      site.act({ act: 'setHost', host: 'cmp1', disabled: true });
    },
    afterMs: 3 * MINUTE,
    code: 'server-stuck',
    sees: /^cmp1-a cannot leave cmp1: the VM is neither ACTIVE nor PAUSED$/,
    does: /openstack server unrescue VM/,
  },
  {
    fault: 'Neutron fails, and VMs whose ports are not known have to stay',
    options: { config: (config) => ({ ...config, nova: { ...config.nova, sriovPorts: 'read' } }) },
    strike: (site) => site.act({ act: 'faultApi', fault: { api: 'network', effect: { kind: 'status', status: 503 } } }),
    afterMs: 120 * MINUTE,
    code: 'ports-unread',
    sees: /^the ports of VMs are not known, so no VM moves: neutron answered 503/,
    does: /sriov_ports = ignore/,
  },
  {
    fault: 'a VM is in ERROR after its move',
    options: { config: (config) => emptying(engine({ dryRun: false })(config)) },
    strike: (site) =>
      site.act(
        { act: 'faultServer', server: 'cmp1-a', fault: { kind: 'error-after-switchover' } },
        { act: 'setHost', host: 'cmp1', disabled: true },
      ),
    afterMs: 10 * MINUTE,
    code: 'server-in-error',
    sees: /^cmp1-a is in ERROR on cmp\d after its move from cmp1/,
    does: /Check whether the guest runs/,
  },
  {
    fault: 'a compute was restarted while moves of others ran on it, and Nova keeps a row that nobody works on',
    strike: (site) =>
      site.act(
        { act: 'faultServer', server: 'cmp1-a', fault: { kind: 'hang' } },
        { act: 'faultServer', server: 'cmp1-b', fault: { kind: 'hang' } },
        { act: 'migrateServer', server: 'cmp1-a' },
        { act: 'migrateServer', server: 'cmp1-b' },
      ),
    laterMs: 4 * MINUTE,
    later: (site) => site.act({ act: 'killHost', host: 'cmp1' }, { act: 'startHost', host: 'cmp1' }),
    afterMs: 30 * MINUTE,
    code: 'migration-abandoned',
    sees: /^Nova no longer works on migration \d+ of cmp1-[ab] \(queued\)/,
    does: /UPDATE migrations/,
  },
  {
    fault: 'JetStream does not answer',
    strike: (site) => {
      site.nats.loses = (subject) => subject.startsWith('$JS.API');
    },
    code: 'jetstream-unavailable',
    sees: /^stream KRONOS_LOG: no answer in time$/,
    does: /disks and the log of the NATS servers/,
  },
  {
    fault: 'the event log is about to reach its limit',
    options: { config: smallLog },
    strike: () => {},
    afterMs: 7.5 * MINUTE,
    code: 'stream-filling',
    sees: /^is \d\d % full/,
    does: /before it is full/,
  },
  {
    fault: 'the event log has reached its limit',
    options: { config: smallLog },
    strike: () => {},
    afterMs: 20 * MINUTE,
    code: 'log-full',
    sees: /^the event log (accepts no messages: .*maximum bytes exceeded|is \d+ % full: nothing is planned)/,
    does: /Raise \[nats\] log_max_bytes/,
  },
  {
    fault: 'somebody disabled a host that nobody empties',
    strike: (site) => site.act({ act: 'setHost', host: 'cmp2', disabled: true }),
    afterMs: 3 * MINUTE,
    note: true,
    code: 'host-disabled',
    sees: /^nova-compute is disabled \(1 of 3 hosts of compute\)$/,
    does: /Nothing to do if somebody disabled it on purpose/,
  },
  {
    fault: 'one VM is larger than the threshold allows',
    options: {
      scenario: (input) => ({
        ...input,
        servers: (input.servers ?? []).map((server) =>
          server.name === 'cmp1-a' ? { ...server, demand: { cpuCores: 10, memoryMb: 2048 } } : server,
        ),
      }),
    },
    note: true,
    code: 'threshold-unreachable',
    sees: /cmp1-a/,
    does: /Raise the threshold of the policy/,
  },
  {
    fault: 'hosts have load that no VM has',
    strike: (site) =>
      site.act({
        act: 'faultSeries',
        fault: { kind: 'value', metric: 'host_cpu_utilisation', value: 0.35 },
      }),
    afterMs: 5 * MINUTE,
    note: true,
    code: 'policy-host-load',
    sees: /^the values of the VMs on cmp\d add up to [\d.]+, and the host's value is 0\.35/,
    does: /Look at what else runs on these hosts/,
  },
  {
    fault: 'the exporters of VMs run on one host of three',
    strike: (site) =>
      site.act(
        ...['cmp1', 'cmp2'].map((host) => ({
          act: 'faultSeries' as const,
          fault: { kind: 'missing' as const, metric: 'vm_cpu_cores', labels: { host } },
        })),
      ),
    afterMs: 10 * MINUTE,
    note: true,
    code: 'policy-few-servers',
    sees: /^only 2 of 6 VMs have a value/,
    does: /Run the exporter of VMs on every host/,
  },
  {
    // The failures quarantine both VMs too: one cause, one alarm.
    fault: 'moves to a host fail again and again',
    options: {
      config: (config) => ({
        ...engine({ cooldown: 1 })(moving(config)),
        executor: { ...config.executor, breakerFailures: 2 },
      }),
    },
    strike: (site) =>
      site.act(
        { act: 'faultHost', host: 'cmp2', fault: { kind: 'fail-inbound' } },
        { act: 'setHost', host: 'cmp3', full: true },
        { act: 'setHost', host: 'cmp1', disabled: true },
      ),
    afterMs: 10 * MINUTE,
    code: 'host-broken',
    sees: /^receives no VM until .*: too many moves to it failed$/,
    does: /kronos host release HOST/,
  },
  {
    fault: 'a move was forced past the scheduler',
    options: {
      config: (config) => ({ ...moving(config), executor: { ...config.executor, force: true } }),
      scenario: (input) => ({ ...input, compute: '2.60' }),
    },
    strike: (site) =>
      site.act(
        ...['a', 'b'].map((letter) => ({
          act: 'faultServer' as const,
          server: `cmp1-${letter}`,
          fault: { kind: 'hang' as const },
        })),
        { act: 'setHost', host: 'cmp1', disabled: true },
      ),
    afterMs: 4 * MINUTE,
    code: 'move-forced',
    sees: /^cmp1-[ab] \(compute-\d+-s\d\) was forced past the scheduler$/,
    does: /Turn \[executor\] force off/,
  },
  {
    fault: "this person's own clock is behind",
    strike: (site) => {
      site.behindMs = 60 * MINUTE;
    },
    code: 'local-clock',
    sees: /^its clock is at least [\d a-z]+ behind the NATS server's$/,
    does: /Set the clock of this machine/,
  },
  {
    fault: 'the clock of the scorer is wrong',
    strike: (site) => {
      const process = site.supervisor.processOf('scorer-1');
      if (process !== null) process.skewMs = 60_000;
    },
    afterMs: 5 * MINUTE,
    code: 'clock-skew',
    sees: /clock/,
    does: /Set the clock of that machine/,
  },
];

describe('each cause of status', () => {
  const rows = new Set<string>(table.map(({ code }) => code));

  it('has a row here, or names the test that holds it', () => {
    const missing = Object.keys(causes).filter((code) => !rows.has(code) && !Object.hasOwn(elsewhere, code));
    expect(missing).toEqual([]);
    expect(Object.keys(elsewhere).filter((code) => rows.has(code))).toEqual([]);
  });

  it.each(Object.entries(elsewhere))('%s is held by the test that is named', (code, [file, test]) => {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    expect(text.includes(test), `${file} has no test "${test}"`).toBe(true);
    expect(text).toContain(code);
  });
});

describe('while a fault lasts, status shows its cause in one sentence, and nothing else', () => {
  let site: Site | null = null;
  afterEach(() => {
    site?.end();
    site = null;
  });

  it.each(table)(
    '$fault',
    async ({ options = {}, strike, later, laterMs = 0, afterMs = 0, note, code, sees, does }) => {
      site = await openSite(options);
      if (strike !== undefined) {
        expect(await site.alarms()).toEqual([]);
        strike(site);
      }
      await site.run(laterMs);
      later?.(site);
      await site.run(afterMs);
      const alarms = await site.alarms();
      if (note === true) expect(alarms).toEqual([]);
      const lines = note === true ? await site.notes() : alarms;
      expect(lines.map((one) => [one.code, one.text])).toEqual([[code, expect.stringMatching(sees)]]);
      expect(lines[0]?.remedy).toMatch(does);
    },
  );

  it('a VM waits for its resize to be confirmed: an alarm until Nova does it, and then the VM leaves', async () => {
    site = await openSite({
      config: (config) => emptying(engine({ dryRun: false, cooldown: 1 })(config)),
      scenario: (input) => ({ ...input, resizeConfirmWindow: 900 }),
    });
    const { cloud } = site.sim;
    const server = cloud.server('cmp1-a');
    asPerson(site.sim, (nowMs, caller) => cloud.coldMigrate(nowMs, caller, server.uuid, 'cmp2'));
    await site.run(MINUTE);
    expect([server.vmState, server.host]).toEqual(['resized', 'cmp2']);
    site.act({ act: 'setHost', host: 'cmp2', disabled: true });
    await site.run(5 * MINUTE);
    expect((await site.alarms()).map(({ code, text, remedy }) => [code, text, remedy])).toEqual([
      [
        'server-stuck',
        expect.stringMatching(/^cmp1-a cannot leave cmp2: .*confirm/),
        expect.stringMatching(/openstack server resize confirm/),
      ],
    ]);
    const others = [...cloud.servers.values()].filter(({ host }) => host === 'cmp2');
    expect(others.map(({ name }) => name)).toEqual(['cmp1-a']);
    await site.run(15 * MINUTE);
    expect([server.vmState, server.host]).toEqual(['active', expect.stringMatching(/^cmp[13]$/)]);
    expect(await site.alarms()).toEqual([]);
  });

  it('the log says so while a call hangs, and when it is over', async () => {
    site = await openSite();
    site.act({ act: 'faultApi', fault: { api: 'placement', effect: { kind: 'hang' } } });
    await site.run(3 * MINUTE);
    const said = () => site?.lines.filter(({ line }) => line.includes('placement has not answered')).length ?? 0;
    expect(said()).toBeGreaterThanOrEqual(2);
    site.act({ act: 'mendApi' });
    await site.run(10 * MINUTE);
    const before = said();
    await site.run(10 * MINUTE);
    expect(said()).toBe(before);
    expect(site.lines.some(({ line }) => line.includes('placement answers again'))).toBe(true);
    expect(await site.alarms()).toEqual([]);
  });
});
