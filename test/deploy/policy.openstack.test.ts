import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from '@kronos/clock/testing';
import { freePorts } from '@kronos/eventlog/testing';
import { type AuthOptions, createNova, createPlacement, createSession } from '@kronos/openstack';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { watch } from '../e2e/world.ts';
import { bedRoot, bedUrls } from '../openstack/urls.ts';

const run = promisify(execFile);
const bedPath = fileURLToPath(new URL('../openstack/bed', import.meta.url));
const deploy = fileURLToPath(new URL('../../deploy/openstack/', import.meta.url));
const bed = async (...args: string[]) => (await run(bedPath, args, { maxBuffer: 64 * 1024 ** 2 })).stdout;
const AGGREGATE = 'kronos-policy';
const HOSTS = ['cmp1', 'cmp2', 'cmp3'];

/** Further APIs on the bed's databases. They use the policies of deploy/ and check access rules. */
class Apis {
  readonly #inside = '/lab/kronos';
  readonly #children: ChildProcess[] = [];
  compute = '';
  placement = '';

  async start(): Promise<void> {
    const [novaPort = 0, placementPort = 0] = await freePorts(2);
    const place = `${bedRoot}${this.#inside}`;
    mkdirSync(join(place, 'nova-policy'), { recursive: true });
    mkdirSync(join(place, 'placement'), { recursive: true });
    copyFileSync(join(deploy, 'policy.yaml'), join(place, 'nova-policy', 'kronos.yaml'));
    copyFileSync(join(deploy, 'placement-policy.yaml'), join(place, 'placement', 'policy.yaml'));
    copyFileSync(fileURLToPath(new URL('rights.py', import.meta.url)), join(place, 'rights.py'));
    const nova = readFileSync(`${bedRoot}/lab/etc/nova.conf`, 'utf8')
      .replace(/^osapi_compute_listen_port=.*$/m, `osapi_compute_listen_port=${novaPort}`)
      .replace(/^osapi_compute_workers=.*$/m, 'osapi_compute_workers=1')
      .replace(/^log_file=.*$/m, `log_file=${this.#inside}/nova-api.log`)
      .replace(/^policy_dirs=.*$/m, `policy_dirs=${this.#inside}/nova-policy`)
      .replace(/^\[keystone_authtoken\]$/m, '[keystone_authtoken]\nservice_type=compute');
    writeFileSync(join(place, 'nova.conf'), nova);
    const placement = readFileSync(`${bedRoot}/lab/etc/placement/placement.conf`, 'utf8')
      .replace(/^log_file=.*$/m, `log_file=${this.#inside}/placement.log`)
      .replace(/^\[keystone_authtoken\]$/m, '[keystone_authtoken]\nservice_type=placement');
    writeFileSync(
      join(place, 'placement', 'placement.conf'),
      `${placement}\n[oslo_policy]\npolicy_file=${this.#inside}/placement/policy.yaml\n`,
    );
    this.#spawn('nova-api', '--config-file', `${this.#inside}/nova.conf`);
    this.#spawn(
      ...['env', `OS_PLACEMENT_CONFIG_DIR=${this.#inside}/placement`, 'uwsgi', '--plugin', 'python3', '--die-on-term'],
      ...['--http-socket', `127.0.0.1:${placementPort}`, '--wsgi-file', '/lab/etc/wsgi_placement.py', '--master'],
      ...['--add-header', 'Connection: close'],
    );
    this.compute = `http://127.0.0.1:${novaPort}/v2.1`;
    this.placement = `http://127.0.0.1:${placementPort}`;
    await Promise.all([answers(`http://127.0.0.1:${novaPort}/`), answers(this.placement)]);
  }

  /** The permissions that Nova's policy code gives the reader. */
  async rights(): Promise<{ isAdmin: boolean; passed: string[] }> {
    const inside = ['python3', `${this.#inside}/rights.py`, `${this.#inside}/nova.conf`];
    return JSON.parse((await run('chroot', [bedRoot, ...inside], { env: plain })).stdout);
  }

  /** Ends both services with their workers, and removes their files. */
  async stop(): Promise<void> {
    await Promise.all(this.#children.map(endGroup));
    rmSync(`${bedRoot}${this.#inside}`, { recursive: true, force: true });
  }

  #spawn(...command: string[]): void {
    this.#children.push(spawn('chroot', [bedRoot, ...command], { stdio: 'ignore', detached: true, env: plain }));
  }
}

const plain = { HOME: '/root', LC_ALL: 'C.UTF-8', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

/** Ends a process group and waits until it is empty, because an ending worker still writes to its log. */
async function endGroup({ pid }: ChildProcess): Promise<void> {
  if (pid === undefined) return;
  const signal = (name: NodeJS.Signals | 0): boolean => {
    try {
      return process.kill(-pid, name);
    } catch {
      return false;
    }
  };
  signal('SIGTERM');
  await until(() => !signal(0), 10_000).catch(() => signal('SIGKILL'));
  await until(() => !signal(0), 60_000, `the end of process group ${pid}`);
}

const answers = (url: string): Promise<true> =>
  until(
    async () => {
      const answer = await fetch(url).catch(() => null);
      return answer !== null && answer.status < 500;
    },
    60_000,
    `an answer of ${url}`,
  );

type Account = Pick<AuthOptions, 'authType' | 'username' | 'password'> & Partial<AuthOptions>;
const admin: Account = { authType: 'password', username: 'admin', password: 'secret', projectName: 'admin' };

describe('credentials of Kronos on a real OpenStack', () => {
  const apis = new Apis();
  const dir = mkdtempSync(join(tmpdir(), 'kronos-policy-'));
  const file = (name: string) => join(dir, name);
  const secret = (name: string) => readFileSync(file(name), 'utf8').trim();
  let servers: string[];

  const connect = (account: Account) => {
    const domain = account.authType === 'password' ? { userDomainId: 'default', projectDomainId: 'default' } : {};
    const auth = { authUrl: bedUrls.identity, regionName: 'RegionOne', ...domain, ...account } as AuthOptions;
    const session = createSession({
      auth: { ...auth, endpointOverrides: { compute: apis.compute, placement: apis.placement } },
    });
    return { session, nova: createNova(session, { pageSize: 1000 }), placement: createPlacement(session) };
  };
  const scorer = () =>
    connect({
      authType: 'password',
      username: 'kronos-scorer',
      password: secret('scorer.password'),
      projectName: 'kronos',
    });
  const executor = () =>
    connect({
      authType: 'v3applicationcredential',
      username: 'kronos-executor',
      userDomainId: 'default',
      applicationCredentialName: 'kronos',
      applicationCredentialSecret: secret('executor.secret'),
    } as Account);

  /** The HTTP status of a call to Nova or Placement. */
  async function status(account: () => ReturnType<typeof connect>, method: string, url: string, body?: unknown) {
    const token = await account().session.token();
    const response = await fetch(url, {
      method,
      headers: {
        'x-auth-token': token,
        'content-type': 'application/json',
        'openstack-api-version': url.startsWith(apis.placement) ? 'placement 1.36' : 'compute 2.90',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return response.status;
  }

  beforeAll(async () => {
    await bed('reset');
    await bed('seconds', '1');
    await bed('aggregate', AGGREGATE, ...HOSTS);
    // The command that the documentation names, with the bed's client for `openstack`.
    mkdirSync(file('bin'));
    writeFileSync(file('bin/openstack'), `#!/bin/sh\nexec chroot ${bedRoot} env openstack "$@"\n`);
    chmodSync(file('bin/openstack'), 0o755);
    const env: Record<string, string> = { ...plain, PATH: `${file('bin')}${delimiter}${plain.PATH}` };
    for (const [, name = '', value = ''] of (await bed('env')).matchAll(/^export (\w+)=(.*)$/gm)) env[name] = value;
    const boot = async () => {
      const group = (await bed('group', 'kronos-policy-apart', 'soft-anti-affinity')).trim();
      return bed('servers', '3', 'cmp1', '8', '8000', group);
    };
    const users = [file('scorer.password'), file('executor.password'), file('executor.secret')];
    const [booted] = await Promise.all([boot(), run(join(deploy, 'users'), users, { env }), apis.start()]);
    servers = booted.split(/\s+/).filter((id) => /^[0-9a-f-]{36}$/.test(id));
    expect(servers).toHaveLength(3);
  });
  afterAll(async () => {
    await apis.stop();
    rmSync(dir, { recursive: true, force: true });
    await bed('reset');
  });

  it('the reader passes the rules of what the scorer reads, and not one other', async () => {
    const { isAdmin, passed } = await apis.rights();
    expect(isAdmin).toBe(true);
    expect(passed).toEqual([
      'compute:server:topology:host:index',
      'compute:server:topology:index',
      'os_compute_api:os-aggregates:index',
      'os_compute_api:os-extended-server-attributes',
      'os_compute_api:os-hypervisors:list-detail',
      'os_compute_api:os-migrations:index',
      'os_compute_api:os-server-groups:index',
      'os_compute_api:os-server-groups:index:all_projects',
      'os_compute_api:os-services:list',
      'os_compute_api:servers:detail',
      'os_compute_api:servers:detail:get_all_tenants',
      'os_compute_api:servers:show',
      'os_compute_api:servers:show:flavor-extra-specs',
      'os_compute_api:servers:show:host_status',
    ]);
  });

  it('the reader sees all that an administrator sees', async () => {
    const see = async ({ nova, placement }: ReturnType<typeof connect>) => {
      // Nova lists its cells in the order of their answers.
      const hypervisors = (await nova.listHypervisors()).toSorted((a, b) => a.id.localeCompare(b.id));
      const services = (await nova.listServices()).toSorted((a, b) => a.host.localeCompare(b.host));
      const [first = ''] = hypervisors.map((h) => h.id);
      return {
        aggregates: await nova.listAggregates(),
        services: services.map(({ id, host, status, state }) => ({ id, host, status, state })),
        hypervisors: hypervisors.map(({ id, hypervisorHostname, service }) => ({ id, hypervisorHostname, service })),
        servers: await nova.listServers(),
        server: await nova.getServer(servers[0] ?? ''),
        topology: await nova.getServerTopology(servers[0] ?? ''),
        groups: await nova.listServerGroups(),
        migrations: await nova.listUnfinishedMigrations(),
        candidates: await placement.allocationCandidates({ resources: { VCPU: 1, MEMORY_MB: 64 } }),
        inventories: await placement.getInventories(first),
        usages: await placement.getUsages(first),
        traits: await placement.getTraits(first),
      };
    };
    const [asReader, asAdmin] = [await see(scorer()), await see(connect(admin))];
    expect(asAdmin.servers.length).toBeGreaterThanOrEqual(3);
    expect(asAdmin.groups.some((group) => group.name === 'kronos-policy-apart')).toBe(true);
    expect(asReader).toEqual(asAdmin);
  });

  it('the reader can change nothing', async () => {
    const { nova } = connect(admin);
    const [service] = await nova.listServices();
    const [aggregate] = await nova.listAggregates();
    const [hypervisor] = await nova.listHypervisors();
    const server = `${apis.compute}/servers/${servers[0]}`;
    const writes: [string, string, unknown?][] = [
      ['POST', `${server}/action`, { 'os-migrateLive': { host: 'cmp2', block_migration: 'auto' } }],
      ['POST', `${server}/action`, { migrate: null }],
      ['POST', `${server}/action`, { reboot: { type: 'HARD' } }],
      ['POST', `${server}/action`, { lock: null }],
      ['DELETE', server],
      ['DELETE', `${server}/migrations/1`],
      ['PUT', `${apis.compute}/os-services/${service?.id}`, { status: 'disabled' }],
      ['POST', `${apis.compute}/os-aggregates/${aggregate?.id}/action`, { remove_host: { host: 'cmp1' } }],
      ['POST', `${apis.compute}/os-aggregates`, { aggregate: { name: 'theirs' } }],
      ['POST', `${apis.compute}/os-server-groups`, { server_group: { name: 'theirs', policy: 'affinity' } }],
      ['POST', `${apis.compute}/flavors`, { flavor: { name: 'theirs', ram: 1, vcpus: 1, disk: 1, id: 'auto' } }],
      ['PUT', `${apis.placement}/traits/CUSTOM_THEIRS`],
      ['DELETE', `${apis.placement}/resource_providers/${hypervisor?.id}`],
    ];
    for (const [method, url, body] of writes)
      expect(await status(scorer, method, url, body), `${method} ${url}`).toBe(403);
  });

  it("the executor's credential migrates and drains, and does nothing else", async () => {
    const { nova } = executor();
    const [id = ''] = servers;
    const server = `${apis.compute}/servers/${id}`;
    const [service] = await nova.listServices();
    // The access rules refuse it before Nova's policy does: for this call the token is invalid.
    for (const [method, url, body] of [
      ['DELETE', server],
      ['PUT', server, { server: { name: 'theirs' } }],
      ['PUT', `${apis.placement}/traits/CUSTOM_THEIRS`],
    ] as const)
      expect(await status(executor, method, url, body), `${method} ${url}`).toBe(401);
    // It may update services for drains: the access rules accept this call, and Nova refuses it.
    expect(await status(executor, 'PUT', `${apis.compute}/os-services/${service?.id}`, { status: 'neither' })).not.toBe(
      401,
    );
    // It has the permission; there is only no migration.
    expect(await status(executor, 'DELETE', `${server}/migrations/999999`)).toBe(409);
    expect(await nova.liveMigrate({ serverId: id, host: 'cmp2' }, { checkSend: () => null })).toMatchObject({
      outcome: 'accepted',
    });
    await until(async () => (await nova.getServer(id)).host === 'cmp2', 120_000, 'the server on cmp2', 300);
    expect(await nova.getServer(id)).toMatchObject({ host: 'cmp2', status: 'ACTIVE' });
  });

  it('the scorer observes with the reader, and the planner decides with no credentials at all', async () => {
    const kronos: DemoInstallation = await openInstallation({
      config: ({ natsUrl, policiesFile }) => `[engine]
aggregates = ${AGGREGATE}
policies_file = ${policiesFile}
evaluation_interval = 5
settle_seconds = 6
[nova]
auth_url = ${bedUrls.identity}
username = kronos-scorer
password_file = ${file('scorer.password')}
project_name = kronos
user_domain_id = default
project_domain_id = default
region_name = RegionOne
endpoint_override = ${apis.compute}
placement_endpoint_override = ${apis.placement}
[prometheus]
url = ${bedUrls.prometheus}
staleness_threshold = 30
[nats]
servers = ${natsUrl}
log_max_bytes = 64MiB
snapshot_max_bytes = 64MiB
[http]
scorer_port = 0
planner_port = 0
executor_port = 0
ledger_port = 0
`,
      policies: `policies:
  - name: cpu
    mode: spread
    weight: 1
    imbalance_query: host_cpu_utilisation
    vm_profile_query: vm_cpu_cores / 64
    vm_profile_label: instance_uuid
    threshold: 0.05
`,
      say: () => {},
      onExit: () => {},
    });
    try {
      const log = watch(kronos);
      await log.until(
        'a decision',
        (events) => events.some((e) => e.type === 'cycle.decided' && e.data.plan !== null),
        90_000,
      );
    } finally {
      await kronos.close();
    }
  });
});
