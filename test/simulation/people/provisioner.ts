/** A person with the credentials of `kronos provision`: provisions, and states which log is in force. */
import { LogNotStated, nameLog, stateInstallation } from '@kronos/checkpoints';
import { type Config, storageLimits } from '@kronos/config';
import { type Actor, ALL } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { Chance } from '../chance.ts';
import type { NatsNetwork } from '../network.ts';
import { Process, trueClock, type World } from '../world.ts';

/** Simulated time after which a person tries again. */
const PERSON_MS = 10_000;
/** Simulated time after which a person checks whether the services accept the log. */
const LOOK_AGAIN_MS = 300_000;
const by: Actor = { service: 'provisioner', instance: 'somebody', version: 'simulated' };

export interface Installation {
  readonly world: World;
  readonly chance: Chance;
  readonly nats: NatsNetwork;
  readonly config: Config;
  readonly aggregates: readonly string[];
  readonly ackWaitSeconds: number;
  readonly onLine: (process: string, line: string) => void;
}

export class Provisioner {
  readonly #installation: Installation;
  #processes = 0;
  #installations = 0;

  constructor(installation: Installation) {
    this.#installation = installation;
  }

  /** How many ids were given out for installations. */
  get installations(): number {
    return this.#installations;
  }

  /** `kronos provision` of an empty server. */
  begin(): Promise<void> {
    return this.#repeat(async (log) => {
      await this.#provision(log);
      await this.#name(log, false);
    });
  }

  /** `kronos provision` after streams were lost. `named`: an older version did it, which asks nothing about the log. */
  async provisionAnew(named: boolean): Promise<void> {
    await this.#repeat(async (log) => {
      await this.#provision(log);
      if (!named) return;
      const expectedLastSequence = await log.lastSequenceOf('controls', ALL);
      await stateInstallation(log, 'provisioned', { ...this.#about(), expectedLastSequence });
    });
  }

  /** `kronos provision --new-log`, and again as long as `kronos provision` still finds a contradiction. */
  async stateLog(): Promise<void> {
    for (let newLog = true; newLog; ) {
      await this.#repeat(async (log) => {
        await this.#provision(log);
        await this.#name(log, true);
      });
      await trueClock(this.#installation.world).sleep(LOOK_AGAIN_MS);
      newLog = false;
      await this.#repeat(async (log) => {
        try {
          await this.#name(log, false);
        } catch (error) {
          if (!(error instanceof LogNotStated)) throw error;
          newLog = true;
        }
      });
    }
  }

  #about() {
    return {
      by,
      comment: null,
      nowMs: this.#installation.world.wall,
      installationId: `00000000-0000-4000-8000-${String(++this.#installations).padStart(12, '0')}`,
    };
  }

  #name(log: EventLog, newLog: boolean): Promise<unknown> {
    return nameLog(log, { aggregates: this.#installation.aggregates, newLog, ...this.#about() });
  }

  #provision(log: EventLog): Promise<unknown> {
    const { config, aggregates, ackWaitSeconds } = this.#installation;
    return log.provision({ limits: storageLimits(config), replicas: 1, aggregates, ackWaitSeconds });
  }

  /** A command that a person repeats until it succeeds. */
  async #repeat(command: (log: EventLog) => Promise<void>): Promise<void> {
    const { world, chance, nats, onLine } = this.#installation;
    for (;;) {
      const process = new Process(world, `provisioner-${++this.#processes}`, chance);
      try {
        const log = await nats.connect(process);
        await command(log);
        await log.close();
        return;
      } catch (error) {
        onLine(process.name, String(error));
        process.kill();
        await trueClock(world).sleep(PERSON_MS);
      }
    }
  }
}
