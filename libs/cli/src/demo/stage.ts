import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { demoPolicies, type Sim } from '@kronos/simcloud';
import { type DemoPlaces, demoConfig } from './files.ts';
import { type DemoInstallation, type InstallationOptions, openInstallation } from './installation.ts';
import { endProcess } from './serviceProcess.ts';

/** The demo's world: a simulated cloud in a process of its own, and an installation that balances it. */
export type DemoStage = DemoInstallation & {
  readonly prometheusUrl: string;
  /** The simulated cloud's own record and controls. */
  readonly cloudUrl: string;
};

export type StageOptions = Omit<InstallationOptions, 'config' | 'policies'> & {
  readonly seed: number;
  /** The pace of the simulated Nova; 1 is real. */
  readonly speed: number;
  /** The ports of the services' HTTP servers; default: any free ones. With ports, each service can run only once. */
  readonly ports?: DemoPlaces['ports'];
};

export async function openStage(options: StageOptions): Promise<DemoStage> {
  options.say(`starting a simulated OpenStack (${options.speed} times faster than a real one)`);
  const cloud = await startCloud(options);
  try {
    const installation = await openInstallation({
      ...options,
      policies: demoPolicies,
      config: (places) =>
        demoConfig({
          ...places,
          keystoneUrl: cloud.keystone,
          prometheusUrl: cloud.prometheus,
          ...(options.ports === undefined ? {} : { ports: options.ports }),
        }),
    });
    return {
      ...installation,
      prometheusUrl: cloud.prometheus,
      cloudUrl: cloud.admin,
      close: async (how) => {
        await installation.close(how);
        await endProcess(cloud.child);
      },
    };
  } catch (error) {
    await endProcess(cloud.child);
    throw error;
  }
}

type SimulatedCloud = { child: ChildProcess; keystone: string; prometheus: string; admin: string };

export async function startCloud({ seed, speed }: Pick<StageOptions, 'seed' | 'speed'>): Promise<SimulatedCloud> {
  const main = fileURLToPath(new URL('main.ts', import.meta.resolve('@kronos/simcloud')));
  const args = ['--scenario', 'demo', '--port', '0', '--speed', String(speed), '--seed', String(seed)];
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.once('exit', (code) => reject(new Error(`the simulated cloud ended with ${code} before it was ready`)));
  });
  const { urls } = JSON.parse(line) as { urls: Pick<Sim['urls'], 'identity' | 'prometheus' | 'admin'> };
  return { child, keystone: urls.identity, prometheus: urls.prometheus, admin: urls.admin };
}
