import type { InventoryWitness } from '../inventoryWitness.ts';
import type { ServiceName } from '../services.ts';
import type { Release, Supervisor } from '../supervisor.ts';
import type { World } from '../world.ts';

/** Processes are named by their replicas: `planner-1` is whichever process that planner has now. */
export interface ProcessActs {
  /** Names of the replicas of a service, or of all. */
  processes(service?: ServiceName): readonly string[];
  kill(process: string, downMs: number): void;
  terminate(process: string, downMs: number): void;
  pause(process: string, ms: number): void;
  skew(process: string, ms: number): void;
  /** Starts a planner again, with other options for as long as `lastsMs`, and then again with those of the run. */
  reconfigure(planner: string, downMs: number, lastsMs: number): void;
  /** Ends a process as SIGTERM does, and starts it again from a release. Without effect where it is of that release. */
  replace(process: string, release: Release, downMs: number): void;
}

export const processActs = (world: World, supervisor: Supervisor, witness: InventoryWitness | null): ProcessActs => ({
  processes: (service) => supervisor.names(service),
  kill: (name, ms) => supervisor.kill(name, ms),
  terminate: (name, ms) => supervisor.terminate(name, ms),
  pause: (name, ms) => supervisor.pause(name, ms),
  skew(name, ms) {
    const process = supervisor.processOf(name);
    if (process === null) return;
    process.skewMs = ms;
    witness?.skewed(process.name, ms, world.wall);
  },
  reconfigure: (name, downMs, lastsMs) => supervisor.reconfigure(name, downMs, lastsMs),
  replace: (name, release, downMs) => supervisor.replace(name, release, downMs),
});
