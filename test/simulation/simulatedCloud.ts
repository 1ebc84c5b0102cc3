/** The simulated cloud of a run: on the virtual clock, without sockets. */
import { type Config, Secret } from '@kronos/config';
import {
  type ActInput,
  type CallRecord,
  type InProcessSim,
  NovaRefusal,
  openSim,
  type Scenario,
} from '@kronos/simcloud';
import type { World } from './world.ts';

/** Of the proxy between Kronos and the cloud, which quotes it in the errors of connections. Nothing that is stored may hold it. */
export const PROXY_PASSWORD = 'pass-of-the-proxy';

export function openCloud(scenario: Scenario, seed: number, world: World): InProcessSim {
  return openSim({
    scenario,
    seed,
    clock: { now: () => Math.floor(world.wall) },
    after: (ms, act) => world.after(ms, act),
  });
}

/** The configuration of services that use this cloud. `Own`: how their release hides what is secret. */
export function usingCloud(config: Config, { urls }: InProcessSim, Own: typeof Secret = Secret): Config {
  new Own(PROXY_PASSWORD);
  const user = {
    username: 'admin',
    password: new Own('secret'),
    projectName: 'admin',
    userDomainName: 'Default',
    projectDomainName: 'Default',
  };
  return {
    ...config,
    nova: { ...config.nova, ...user, authUrl: urls.identity },
    prometheus: { ...config.prometheus, url: urls.prometheus },
  };
}

interface CallWatcher {
  /** A call that changes something, after it was answered or cut. */
  readonly called: (call: CallRecord) => void;
  /** A GET of Nova, by its path from `/v2.1` on. */
  readonly read?: (path: string) => void;
}

/** Tells of each call to Nova right after the cloud has taken it, before anything else happens. */
export function watchCalls(sim: InProcessSim, { called, read }: CallWatcher): void {
  const dispatch = sim.dispatch.bind(sim);
  const root = sim.urls.compute.slice(0, -'/v2.1'.length);
  let toldUpTo = 0;
  sim.dispatch = (call, outcome) => {
    const before = toldUpTo;
    dispatch(call, outcome);
    if (call.method === 'GET') {
      if (call.url.startsWith(sim.urls.compute)) read?.(call.url.slice(root.length));
      return;
    }
    for (const made of sim.calls(before)) {
      toldUpTo = made.seq;
      if (made.api === 'compute') called(made);
    }
  };
}

/** Does an act to the cloud. Null: it cannot be done now (the server is gone, the host is full), and is not done. */
export function actIfPossible(sim: InProcessSim, act: ActInput): Readonly<Record<string, unknown>> | null {
  try {
    return sim.act(act);
  } catch {
    return null;
  }
}

/** A person's request to Nova. A refused one does nothing. */
export function asPerson(
  sim: InProcessSim,
  act: (nowMs: number, caller: Parameters<InProcessSim['cloud']['coldMigrate']>[1]) => void,
): void {
  sim.settle();
  const { cloud } = sim;
  const { id, projectId } = cloud.admin;
  try {
    act(cloud.nowMs, { userId: id, projectId, requestId: `req-person-${cloud.nowMs}` });
  } catch (error) {
    if (!(error instanceof NovaRefusal)) throw error;
  }
}
