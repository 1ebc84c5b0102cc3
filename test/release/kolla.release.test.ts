import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loadConfig } from '@kronos/config';
import { cacheDir, findNatsServer, onPath } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from './files.ts';

const run = promisify(execFile);
/** Far beyond the minute or two that a run takes, also on a machine that is busy with other work. */
const LIMIT_S = 1_200;
/** Runs a program of Ansible. Beyond the limit the programs that it has started end with it: `timeout` signals its whole process group. */
const limited = (program: string, args: readonly string[], options: { cwd?: string; env: NodeJS.ProcessEnv }) =>
  run('timeout', ['--kill-after=10', String(LIMIT_S), program, ...args], { maxBuffer: 2 ** 26, ...options });
const KOLLA = '22.2.0';
/** Kolla-Ansible, the collections that it uses from Galaxy, as PyPI has them, and the linter of its own checks. */
const REQUIREMENTS = [`kolla-ansible==${KOLLA}`, 'ansible>=12,<13', 'ansible-lint>=26,<27'];
/** The rules that Kolla-Ansible's own `.ansible-lint` skips, as far as they are not about unnamed tasks. */
const SKIPPED = ['fqcn[action]', 'var-naming[no-role-prefix]', 'yaml[line-length]'];
const python = ['python3.13', 'python3.12', 'python3.11', 'python3'].find((name) => onPath(name, process.env) !== null);
const none = python === undefined ? 'there is no python3' : null;
if (none !== null) console.warn(`skipped: the role of Kolla-Ansible is not rendered; ${none}`);

/** A Python environment with Kolla-Ansible, kept in the cache. It cannot be moved, so a file says what it has. */
async function kolla(): Promise<string> {
  const place = join(cacheDir(), `kolla-${KOLLA}`);
  const complete = join(place, 'complete');
  const wanted = REQUIREMENTS.join('\n');
  if (existsSync(complete) && readFileSync(complete, 'utf8') === wanted) return place;
  rmSync(place, { recursive: true, force: true });
  await run(python ?? '', ['-m', 'venv', place]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-cache-dir', ...REQUIREMENTS];
  await run(join(place, 'bin/python'), pip, { timeout: 900_000, maxBuffer: 2 ** 26 });
  writeFileSync(complete, wanted);
  return place;
}

const HOSTS = ['c1', 'c2', 'c3'];
const SERVICES = ['scorer', 'planner', 'executor', 'ledger'] as const;

describe.skipIf(none !== null)(`deploy/kolla, rendered by Kolla-Ansible ${KOLLA}`, () => {
  const directory = none === null ? mkdtempSync(join(tmpdir(), 'kronos-kolla-')) : '';
  const etc = join(directory, 'etc');
  const inventory = join(directory, 'inventory');
  let said = '';
  const node = (...path: string[]) => join(directory, 'node', ...path);
  const read = (...path: string[]) => readFileSync(node(...path), 'utf8');

  const playbooks = join(directory, 'ansible');
  const inKolla = (environment: string): NodeJS.ProcessEnv => ({
    ...process.env,
    HOME: directory,
    PATH: `${join(environment, 'bin')}:${process.env.PATH ?? ''}`,
    ANSIBLE_COLLECTIONS_PATH: join(environment, 'lib', readdirSync(join(environment, 'lib'))[0] ?? '', 'site-packages'),
  });

  /** An action of Kolla-Ansible for three hosts that are this machine. */
  const act = async (action: string): Promise<string> => {
    const environment = await kolla();
    const args = [
      join(environment, 'bin/kolla-ansible'),
      action,
      ...['-i', inventory, '--configdir', etc, '--passwords', join(etc, 'passwords.yml')],
      ...['-p', join(playbooks, 'kronos.yml')],
    ];
    const { stdout } = await limited(join(environment, 'bin/python'), args, { env: inKolla(environment) });
    return stdout;
  };

  beforeAll(async () => {
    const environment = await kolla();
    const share = join(environment, 'share/kolla-ansible');
    // The step of README.md, in a copy: all runs share the cache.
    cpSync(join(share, 'ansible'), playbooks, { recursive: true });
    cpSync(join(root, 'deploy/kolla/roles/kronos'), join(playbooks, 'roles/kronos'), {
      recursive: true,
      dereference: true,
    });
    cpSync(join(root, 'deploy/kolla/kronos.yml'), join(playbooks, 'kronos.yml'));
    mkdirSync(join(etc, 'globals.d'), { recursive: true });
    mkdirSync(join(etc, 'config/kronos'), { recursive: true });
    for (const name of ['globals.yml', 'passwords.yml'])
      cpSync(join(share, 'etc_examples/kolla', name), join(etc, name));
    await run(join(environment, 'bin/python'), [
      join(environment, 'bin/kolla-genpwd'),
      '-p',
      join(etc, 'passwords.yml'),
    ]);
    const globals = readFileSync(join(root, 'deploy/kolla/globals.yml'), 'utf8');
    const site = `kolla_internal_vip_address: "192.0.2.10"
network_interface: lo
node_config: "${etc}"
node_config_directory: "${node('{{ inventory_hostname }}')}"
kronos_nats_cluster_password: "a/b c"
kolla_install_type: source
`;
    writeFileSync(join(etc, 'globals.d/kronos.yml'), globals + site);
    const hosts = HOSTS.map(
      (name) =>
        `${name} ansible_connection=local ansible_become=false ansible_python_interpreter=${join(environment, 'bin/python')}\n`,
    );
    const groups = readFileSync(join(root, 'deploy/kolla/inventory'), 'utf8');
    writeFileSync(inventory, `[control]\n${hosts.join('')}[loadbalancer:children]\ncontrol\n${groups}`);
    await run(process.execPath, [join(root, 'libs/cli/bin/kronos.js'), 'keys', join(etc, 'config/kronos/keys')]);
    writeFileSync(join(etc, 'config/kronos/scorer.password'), 'of the scorer\n');
    writeFileSync(join(etc, 'config/kronos/executor.secret'), 'of the credential\n');
    writeFileSync(join(etc, 'config/kronos/kronos-planner.conf'), '[engine]\nevaluation_interval = 300\n');
    // The role of the load balancer makes this directory.
    for (const host of HOSTS) mkdirSync(node(host, 'haproxy/services.d'), { recursive: true });
    said = await act('genconfig');
  }, 2_400_000);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('puts each service where its group says: one scorer, planner and ledger, an executor and a NATS server on each host', () => {
    expect(said).toMatch(/failed=0/);
    const of = (host: string) => readdirSync(node(host)).filter((name) => name !== 'haproxy');
    expect(of('c1').sort()).toEqual([
      'kronos-executor',
      'kronos-ledger',
      'kronos-nats',
      'kronos-planner',
      'kronos-scorer',
    ]);
    for (const host of ['c2', 'c3']) expect(of(host).sort()).toEqual(['kronos-executor', 'kronos-nats']);
  });

  it.each(SERVICES)('the %s reads its configuration', (service) => {
    const place = `kronos-${service}`;
    const { config } = loadConfig({
      file: '/etc/kronos/kronos.conf',
      env: {},
      role: service,
      readFile: (path) => read('c1', place, path.replace('/etc/kronos/', '')),
    });
    expect(config.engine).toMatchObject({ aggregates: ['general'], dryRun: true });
    expect(config.engine.evaluationInterval).toBe(service === 'planner' ? 300 : 60);
    expect(config.nova).toMatchObject({ authUrl: 'http://192.0.2.10:5000/v3', regionName: 'RegionOne' });
    expect(config.nats.replicas).toBe(3);
    if (service === 'scorer') {
      expect(config.nova.password?.reveal()).toBe('of the scorer');
      expect(config.prometheus.username).toBe('admin');
    }
    if (service === 'executor') expect(config.nova.applicationCredentialSecret?.reveal()).toBe('of the credential');
  });

  it('nats-server accepts its configuration', async () => {
    const { path } = await findNatsServer('newest');
    const keys = Object.fromEntries(
      readFileSync(join(etc, 'config/kronos/keys/nats.env'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split('=')),
    );
    // The three hosts are one machine here, and a server refuses a route that is there twice.
    let last = 0;
    const text = read('c1', 'kronos-nats/nats.conf').replaceAll('@127.0.0.1:', () => `@127.0.0.${++last}:`);
    expect(last).toBe(3);
    writeFileSync(node('c1', 'kronos-nats/routes.conf'), text);
    const args = ['--config', node('c1', 'kronos-nats/routes.conf'), '-t'];
    const { stderr } = await run(path, args, { env: { ...process.env, ...keys } });
    expect(stderr).toMatch(/is valid/);
  });

  it('HAProxy serves the console on the internal address alone', () => {
    const text = read('c1', 'haproxy/services.d/kronos-ledger.cfg');
    expect(text).toContain('bind 192.0.2.10:9784');
    expect(text).toContain('option httpchk GET /healthz');
    expect(text.match(/^frontend /gm)).toHaveLength(1);
  });

  it('a second run changes nothing', { timeout: 1_500_000 }, async () => {
    expect(await act('genconfig')).toMatch(/changed=0(?=.*\n)/);
  });

  it("the linter of Kolla's own checks finds only a task that is against them", { timeout: 1_500_000 }, async () => {
    const environment = await kolla();
    const rules = join(directory, 'lint.yml');
    writeFileSync(rules, JSON.stringify({ skip_list: SKIPPED }));
    const planted = 'roles/kronos/tasks/planted.yml';
    writeFileSync(join(playbooks, planted), '---\n- shell: echo hello\n');
    const env = {
      ...inKolla(environment),
      ANSIBLE_LIBRARY: join(playbooks, 'library'),
      ANSIBLE_FILTER_PLUGINS: join(playbooks, 'filter_plugins'),
      ANSIBLE_ACTION_PLUGINS: join(playbooks, 'action_plugins'),
      ANSIBLE_MODULE_UTILS: join(playbooks, 'module_utils'),
    };
    const args = ['--offline', '--nocolor', '--format', 'pep8', '-c', rules, 'kronos.yml', 'roles/kronos'];
    const said = await limited(join(environment, 'bin/ansible-lint'), args, { cwd: playbooks, env }).then(
      ({ stdout }) => stdout,
      (error: { code: unknown; stdout: string; stderr: string }) => {
        // 2: it found something.
        if (error.code !== 2) throw new Error(`ansible-lint ended with ${error.code}:\n${error.stdout}${error.stderr}`);
        return error.stdout;
      },
    );
    const found = said.trimEnd().split('\n');
    expect(found.filter((line) => !line.startsWith(`${planted}:`))).toEqual([]);
    expect(found).toContainEqual(expect.stringMatching(/: name\[missing\]/));
  });
});
