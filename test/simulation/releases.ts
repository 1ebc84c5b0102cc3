/** Services of two releases in one run: those of this checkout, and those of a commit, by their own code from Git. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { InProcessSim } from '@kronos/simcloud';
import type { Asked } from './asked.ts';
import type { NatsNetwork } from './network.ts';
import type { Drawn } from './options.ts';
import { type Site, startService } from './services.ts';
import { usingCloud } from './simulatedCloud.ts';

/** How services of a release are started. */
export interface Started {
  readonly site: Site;
  readonly startService: typeof startService;
}

export const thisRelease = (site: Site, sim: InProcessSim): Started => ({
  site: { ...site, config: usingCloud(site.config, sim) },
  startService,
});

/**
 * Services of the commit: its own services, libraries, configuration and event log. Time, the bytes to NATS and to the cloud,
 * and the packages of others are those of this run.
 *
 * @throws where the clone has no such commit, or its simulation starts services in another way
 */
export async function otherRelease(
  commit: string,
  { asked, drawn }: { readonly asked: Asked; readonly drawn: Drawn },
  site: Site,
  { sim, nats }: { readonly sim: InProcessSim; readonly nats: NatsNetwork },
): Promise<Started> {
  // Runs with one release do not load it.
  const { checkOut } = await import('../upgrade/checkout.ts');
  const root = await checkOut(commit);
  const load = <T>(file: string): Promise<T> => import(pathToFileURL(join(root, file)).href) as Promise<T>;
  const its = await load<typeof import('./services.ts')>('test/simulation/services.ts');
  const options = await load<typeof import('./options.ts')>('test/simulation/options.ts');
  const { Secret } = await load<typeof import('@kronos/config')>('libs/config/src/index.ts');
  const { connectEventLog } = await load<typeof import('@kronos/eventlog')>('libs/eventlog/src/index.ts');
  if (typeof its.startService !== 'function') throw new Error(`${commit} starts its services in another way`);
  const { config, policies } = options.settingOf(asked, drawn);
  const connect: Site['nats']['connect'] = (process, hooks = {}, given, wrap) =>
    connectEventLog(
      { servers: ['simulated'], ...given, name: process.name, replicas: 1 },
      hooks,
      nats.wire(process),
      wrap,
    );
  return {
    startService: its.startService,
    site: { ...site, config: usingCloud(config, sim, Secret), policies, nats: { connect } },
  };
}
