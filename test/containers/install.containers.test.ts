import { execFile, execFileSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '@kronos/clock/testing';
import { freePorts } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { transcript } from '../release/transcript.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const section = /## Try it first\n(.*?)\n## /s.exec(readFileSync(join(root, 'docs/install.md'), 'utf8'))?.[1] ?? '';
/** The commands of the page, block by block. */
const [start = [], afterwards = []] = [...section.matchAll(/```\n(.*?)```/gs)].map(([, block = '']) =>
  block.trim().split('\n'),
);

const status = start.at(-1) ?? '';

/** Compose as a plugin, or as the program that the plugin is; null where there is neither. */
function compose(): string | null {
  const version = (program: string, ...args: string[]) => {
    try {
      return /v?[2-9]\.|version dev/.test(
        execFileSync(program, [...args, 'version'], { encoding: 'utf8', stdio: 'pipe' }),
      );
    } catch {
      return false;
    }
  };
  if (version('docker', 'compose')) return 'plugin';
  const places = [
    ...(process.env.PATH ?? '').split(delimiter),
    join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'kronos', 'gobin'),
  ];
  const found = places
    .map((place) => join(place, 'docker-compose'))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return version(path);
      } catch {
        return false;
      }
    });
  return found ?? null;
}

const none = inject('noContainers') ?? (compose() === null ? 'there is no docker compose of version 2 or newer' : null);
if (none !== null) console.warn(`skipped: the commands of docs/install.md; ${none}`);

describe.skipIf(none !== null)('docs/install.md, word for word, in a fresh clone', () => {
  const place = none === null ? mkdtempSync(join(tmpdir(), 'kronos-install-')) : '';
  const clone = join(place, 'kronos');
  const env: Record<string, string | undefined> = {
    ...process.env,
    COMPOSE_PROJECT_NAME: `kronos-install-${process.pid}`,
  };

  const run = (command: string) =>
    new Promise<string>((resolve, reject) => {
      execFile(
        'bash',
        ['-c', command],
        { cwd: clone, env, timeout: 580_000, maxBuffer: 2 ** 26 },
        (error, out, err) => {
          if (error === null) resolve(out);
          else reject(new Error(`${command}\n${out}${err}`));
        },
      );
    });

  const said = transcript(place);
  const type = (command: string) => said.typed(command, () => run(command));

  beforeAll(async () => {
    execFileSync('git', ['clone', '-q', root, clone]);
    const plugin = compose();
    if (plugin !== null && plugin !== 'plugin') {
      env.DOCKER_CONFIG = join(place, 'docker');
      mkdirSync(join(env.DOCKER_CONFIG, 'cli-plugins'), { recursive: true });
      symlinkSync(plugin, join(env.DOCKER_CONFIG, 'cli-plugins/docker-compose'));
    }
    // The page's own port may be taken here.
    const [port = 0] = await freePorts(1);
    env.KRONOS_CONSOLE = `127.0.0.1:${port}`;
  });
  afterAll(async () => {
    await run('docker compose --env-file local/.env --profile trial down -v').catch(() => '');
    rmSync(place, { recursive: true, force: true });
  });

  it('has commands to start with and commands for afterwards', () => {
    expect(start).toHaveLength(5);
    expect(afterwards).toHaveLength(3);
  });

  it.each(start)(
    '%s',
    async (command) => {
      // The page gives this option for hosts that can pull no image.
      await type(command === 'deploy/images/build' ? `${command} --local` : command);
    },
    600_000,
  );

  it('the cloud is balanced after a while, and the console shows it', async () => {
    let said = '';
    const balanced = async () => {
      said = await run(status).catch((error: Error) => error.message);
      return said.includes('no policy detects an imbalance');
    };
    await until(balanced, 400_000, () => `a balanced cloud; status said last:\n${said}`);
    const page = await fetch(`http://${env.KRONOS_CONSOLE}/`);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('Kronos');
  }, 450_000);

  it.each(afterwards)(
    '%s',
    async (command) => {
      await type(command);
    },
    120_000,
  );

  it('nothing of it is left', async () => {
    expect(await run('docker ps -aq --filter label=com.docker.compose.project=$COMPOSE_PROJECT_NAME')).toBe('');
    const title = 'From a clone to a balanced cloud with Docker Compose';
    said.write({ name: 'compose', title, how: 'npm run test:containers -- install' });
  });
});
