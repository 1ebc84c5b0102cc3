/** The loss of KRONOS_LOG: it is provisioned again, and a person states later that it is to be used as it is. */
import type { SimulatedServer } from '@kronos/eventlog/simulated';
import type { Provisioner } from './people/provisioner.ts';
import { trueClock, type World } from './world.ts';

export class LogLoss {
  readonly #world: World;
  readonly #server: SimulatedServer;
  readonly #provisioner: Provisioner;
  /** Told of the streams that are lost, right after the loss. */
  readonly #onLost: (streams: readonly string[]) => void;
  /** Lets the person state now which log it is; null: no log is lost. */
  #state: (() => void) | null = null;

  constructor(
    world: World,
    server: SimulatedServer,
    provisioner: Provisioner,
    onLost: (streams: readonly string[]) => void,
  ) {
    this.#world = world;
    this.#server = server;
    this.#provisioner = provisioner;
    this.#onLost = onLost;
  }

  /** Until a person has stated which log is in force, and the services accept it. */
  get lasts(): boolean {
    return this.#state !== null;
  }

  /**
   * Streams are lost, KRONOS_LOG among them. While another loss lasts, nothing is done.
   *
   * @param named it is provisioned under another name; otherwise under none
   */
  begin(streams: readonly string[], goneMs: number, named: boolean, statedAfterMs: number): void {
    if (this.lasts) return;
    const { promise: stated, resolve: state } = Promise.withResolvers<void>();
    this.#state = state;
    for (const name of streams) this.#server.delete(name);
    this.#onLost(streams);
    const provisionAnew = async (): Promise<void> => {
      // The clock is virtual: nobody waits for this.
      await trueClock(this.#world).sleep(goneMs);
      await this.#provisioner.provisionAnew(named);
      this.#world.after(statedAfterMs, state);
      await stated;
      await this.#provisioner.stateLog();
      this.#state = null;
    };
    provisionAnew().catch((error: unknown) => this.#world.fail(error));
  }

  /** The person does not wait any longer. */
  stateNow(): void {
    this.#state?.();
  }
}
