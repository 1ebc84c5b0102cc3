/** Keeps the replicas of each service running, as the supervisor of a host does. */
import type { Chance } from './chance.ts';
import { otherwise } from './options.ts';
import type { Started } from './releases.ts';
import type { Running, ServiceName } from './services.ts';
import { Process, type World } from './world.ts';

/** A service that ends by itself is started again after this. */
const RESTART_MS = 2_000;
/** A process that does not end on SIGTERM is killed after this. */
const TERMINATE_MS = 30_000;

/** With the options of the run, or with others (`otherwise`). */
type Configuration = 'usual' | 'other';
/** Of this checkout, or the one that `--beside` names. */
export type Release = 'this' | 'other';

export interface Supervised {
  readonly world: World;
  readonly chance: Chance;
  /** How services of this release are started; with `other`, the services are of that one at first. */
  readonly releases: { readonly this: Started; readonly other: Started | null };
  readonly services: readonly ServiceName[];
  readonly replicas: number;
  /** A process is about to start a service. */
  readonly onStart?: (service: ServiceName, process: string, configuration: Configuration) => void;
  /** A process is about to be replaced by one of the other release. */
  readonly onReplace?: () => void;
}

/** One replica of a service. It has one name and one process after the other. */
interface Replica {
  readonly service: ServiceName;
  readonly name: string;
  starts: number;
  configuration: Configuration;
  release: Release;
  /** Null: it is down. */
  process: Process | null;
  running: Running | null;
}

export class Supervisor {
  readonly #supervised: Supervised;
  readonly #replicas: readonly Replica[];

  constructor(supervised: Supervised) {
    this.#supervised = supervised;
    this.#replicas = supervised.services.flatMap((service) =>
      Array.from({ length: supervised.replicas }, (_, index) => ({
        service,
        name: `${service}-${index + 1}`,
        starts: 0,
        configuration: 'usual' as const,
        release: supervised.releases.other === null ? ('this' as const) : ('other' as const),
        process: null,
        running: null,
      })),
    );
  }

  /** Names of the replicas of a service, or of all. */
  names(service?: ServiceName): readonly string[] {
    return this.#replicas.filter((one) => service === undefined || one.service === service).map(({ name }) => name);
  }

  /** The process that a replica has now. */
  processOf(name: string): Process | null {
    return this.#find(name)?.process ?? null;
  }

  processes(): readonly Process[] {
    return this.#replicas.flatMap(({ process }) => (process === null ? [] : [process]));
  }

  /** How often processes of a service were started so far. */
  starts(service: ServiceName): number {
    return this.#replicas.reduce((sum, one) => sum + (one.service === service ? one.starts : 0), 0);
  }

  start(name: string): void {
    const replica = this.#find(name);
    if (replica !== undefined) this.#start(replica);
  }

  /** Kills the process, and starts another one after a while. */
  kill(name: string, downMs: number): void {
    const replica = this.#find(name);
    if (replica !== undefined && replica.process !== null) this.#down(replica, downMs);
  }

  /** Asks the process to end, as SIGTERM does, and starts another one a while after it has. */
  terminate(name: string, downMs: number): void {
    const replica = this.#find(name);
    if (replica === undefined || replica.process === null || replica.running === null) return;
    const { process, running } = replica;
    const end = (): void => {
      if (replica.process === process) this.#down(replica, downMs);
    };
    process.enter(() => void running.stop().then(end, end));
    this.#supervised.world.after(TERMINATE_MS, end);
  }

  pause(name: string, ms: number): void {
    const process = this.processOf(name);
    if (process === null || process.paused) return;
    process.pause();
    this.#supervised.world.after(ms, () => process.resume());
  }

  /** Starts a replica again, with other options for as long as `lastsMs`, and then again with those of the run. */
  reconfigure(name: string, downMs: number, lastsMs: number): void {
    const replica = this.#find(name);
    if (replica === undefined || replica.configuration === 'other') return;
    const as = (configuration: Configuration): void => {
      replica.configuration = configuration;
      if (replica.process !== null) this.#down(replica, downMs);
    };
    as('other');
    this.#supervised.world.after(lastsMs, () => as('usual'));
  }

  /** Ends a process as `terminate` does, and starts it again from a release. Without effect where it is of that release. */
  replace(name: string, release: Release, downMs: number): void {
    const replica = this.#find(name);
    if (replica === undefined || replica.release === release) return;
    this.#supervised.onReplace?.();
    replica.release = release;
    this.terminate(name, downMs);
  }

  /** The run is over: nothing is started again. */
  end(): void {
    for (const process of this.processes()) process.kill();
  }

  #find(name: string): Replica | undefined {
    return this.#replicas.find((one) => one.name === name);
  }

  #start(replica: Replica): void {
    if (replica.process !== null) return;
    const { world, chance, releases, onStart } = this.#supervised;
    const { service, configuration, release } = replica;
    const { site, startService } = releases[release] ?? releases.this;
    const process = new Process(world, `${replica.name}-${++replica.starts}`, chance);
    replica.process = process;
    const ended = (error: unknown): void => {
      if (!process.alive) return;
      site.onLine(process.name, `ended: ${error instanceof Error ? error.stack : String(error)}`);
      this.#down(replica, RESTART_MS);
    };
    onStart?.(service, process.name, configuration);
    const its = configuration === 'other' ? { ...site, config: otherwise(site.config) } : site;
    process.enter(() => {
      replica.running = startService(service, its, process, ended);
    });
  }

  #down(replica: Replica, ms: number): void {
    replica.process?.kill();
    replica.process = null;
    replica.running = null;
    this.#supervised.world.after(ms, () => this.#start(replica));
  }
}
