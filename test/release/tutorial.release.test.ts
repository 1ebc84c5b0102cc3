/** The commands of docs/tutorial.md in an empty home, from the npm package and from a clone, to a first plan. */
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { until } from '@kronos/clock/testing';
import { freePorts } from '@kronos/eventlog/testing';
import { demoCloud, type Sim, startSim } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';
import { tutorialCommands } from '../deploy/tutorial.ts';
import { releaseFiles, root, version } from './files.ts';
import { transcript } from './transcript.ts';

const page = readFileSync(join(root, 'docs/tutorial.md'), 'utf8');
const [clone = '', names = '', ...rest] = tutorialCommands();
const [, install = '', name = ''] = /npm package of a release, run `([^`]+)`\s+and `([^`]+)` instead/.exec(page) ?? [];
/** This checkout has a `kronos` and a Node of its own, which a person does not. */
const PATH = (process.env.PATH ?? '').split(delimiter).filter((place) => !place.startsWith(root));

/** A shell that stays, as the one in which a person types. */
function openShell(cwd: string, env: NodeJS.ProcessEnv) {
  const shell: ChildProcess = spawn('bash', ['--norc'], { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] });
  let text = '';
  shell.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const MARK = 'the end of the answer';
  shell.stdin?.write('exec 2>&1\n');
  return {
    process: shell,
    /** The output of a command. @throws Error with it when the command fails */
    run: async (command: string): Promise<string> => {
      text = '';
      shell.stdin?.write(`${command}\necho "${MARK}: $?"\n`);
      const end = new RegExp(`^${MARK}: (\\d+)$`, 'm');
      const [all = '', status] = await until(
        () => end.exec(text),
        590_000,
        () => `the end of ${command}:\n${text}`,
      );
      const said = text.slice(0, text.indexOf(all));
      if (status !== '0') throw new Error(`${command}: status ${status}\n${said}`);
      return said;
    },
  };
}

describe.each([
  { way: 'npm', title: 'From the npm package to the first plan', first: [install, name] },
  { way: 'clone', title: 'From a clone of the project to the first plan', first: [clone, names] },
])('docs/tutorial.md from $way', ({ way, title, first }) => {
  let directory = '';
  let said: ReturnType<typeof transcript>;
  let sim: Sim;
  let shell: ReturnType<typeof openShell>;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-tutorial-'));
    const home = join(directory, 'home');
    said = transcript(home);
    mkdirSync(join(home, '.config/openstack'), { recursive: true });
    const packed = `kronos-${version}.tgz`;
    if (way === 'npm') copyFileSync(join(releaseFiles(), packed), join(home, packed));
    sim = await startSim({ scenario: demoCloud(), speed: 10 });
    const auth = { auth_url: sim.urls.identity, username: 'admin', password: 'secret', project_name: 'admin' };
    const domains = { user_domain_id: 'default', project_domain_id: 'default' };
    const demo = { auth: { ...auth, ...domains }, region_name: 'RegionOne' };
    writeFileSync(join(home, '.config/openstack/clouds.yaml'), JSON.stringify({ clouds: { demo } }));
    const [nats = 0, ...ports] = await freePorts(5);
    const http = ['SCORER', 'PLANNER', 'EXECUTOR', 'LEDGER'].map((service, i) => [
      `OS_HTTP__${service}_PORT`,
      `${ports[i]}`,
    ]);
    const ours = Object.entries(process.env).filter(([each]) => !/^(OS|KRONOS|NODE_OPTIONS|VITEST)/.test(each));
    shell = openShell(home, {
      ...Object.fromEntries(ours),
      HOME: home,
      // How this machine reaches a registry, and what it has of it.
      npm_config_userconfig: join(homedir(), '.npmrc'),
      npm_config_cache: join(homedir(), '.npm'),
      PATH: [join(home, '.npm/bin'), ...PATH].join(delimiter),
      npm_config_prefix: join(home, '.npm'),
      OS_NATS__SERVERS: `nats://127.0.0.1:${nats}`,
      ...Object.fromEntries(http),
    });
  });
  afterAll(async () => {
    await shell?.run('kill %1 && wait').catch(() => '');
    if (shell !== undefined) await endProcess(shell.process);
    await sim?.close();
    if (directory !== '') rmSync(directory, { recursive: true, force: true });
  });

  it('from nothing to a plan, its reasons and a report', async () => {
    const type = (command: string, real = command) => said.typed(command, () => shell.run(real));
    for (const command of first) await type(command.replace('VERSION', version), given(command));
    const answers = new Map<string, string>();
    for (const command of rest) {
      // The simulated cloud has no exporters: it is balanced by what is allocated.
      const own = command.replace('NAME', 'demo').replace(/ --prometheus \S+/, '');
      answers.set(command, await type(own));
    }
    const of = (beginning: string) => [...answers].find(([command]) => command.startsWith(beginning))?.[1] ?? '';
    expect(of('kronos init')).toContain('12 hosts');
    expect(of('kronos status')).toContain('all is well');
    expect(of('kronos evaluate')).toMatch(/^general: planned \(\d+ moves?, dry run\)/m);
    expect(of('kronos plan show')).toMatch(/dry run +The move lowers the combined imbalance/);
    said.write({ name: way, title, how: `npm run test:release -- tutorial -t ${way}` });
  });
});

/** A command of the page with what its names stand for here. */
function given(command: string): string {
  return command.replace('URL-OF-KRONOS', root).replace('VERSION', version);
}
