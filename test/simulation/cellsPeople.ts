/** The people of a run with moves between two cells: they ask for plans, approve them, confirm, revert, delete and mend. */
import type { Message } from '@kronos/contracts';
import type { InProcessSim } from '@kronos/simcloud';
import type { CellsChecker } from './cellsChecker.ts';
import type { Chance } from './chance.ts';
import type { Commands } from './people/commands.ts';
import { actIfPossible } from './simulatedCloud.ts';
import type { World } from './world.ts';

/** Until the first plan is asked for. */
const FIRST_MS = 400_000;
/** How often an operator looks for servers that nobody moves any more. */
const MEND_MS = 900_000;
const USER = { userId: 'user', projectId: 'admin', requestId: 'req-user' };

export interface PeopleSetting {
  readonly world: World;
  readonly chance: Chance;
  readonly sim: InProcessSim;
  readonly checker: CellsChecker;
  readonly commands: Commands;
  /** Server -> its `vm_state` before any move. */
  readonly before: ReadonlyMap<string, string>;
  readonly confirm: 'auto' | 'manual';
}

export class CellsPeople {
  readonly #world: World;
  readonly #sim: InProcessSim;
  readonly #checker: CellsChecker;
  readonly #commands: Commands;
  readonly #moods: Chance;
  readonly #wishes: Chance;
  /** Server -> its `vm_state` before any move. */
  readonly #before: ReadonlyMap<string, string>;
  /** Whether people confirm what passed its checks: Kronos does not. */
  readonly #manual: boolean;
  #calm = false;

  constructor({ world, chance, sim, checker, commands, before, confirm }: PeopleSetting) {
    this.#world = world;
    this.#sim = sim;
    this.#checker = checker;
    this.#commands = commands;
    this.#moods = chance.fork('people');
    this.#wishes = chance.fork('wishes');
    this.#before = before;
    this.#manual = confirm === 'manual';
  }

  begin(): void {
    this.#world.after(FIRST_MS, () => this.#ask());
  }

  /** An operator looks from time to time. */
  beginMending(): void {
    this.#world.after(MEND_MS, () => {
      if (this.#calm) return;
      this.mend();
      this.beginMending();
    });
  }

  /** Nobody asks for anything any more, and users leave to Kronos what it moves. */
  calm(): void {
    this.#calm = true;
  }

  /** Something was stored on the log. */
  stored({ type, aggregate, data }: Message): void {
    switch (type) {
      case 'plan.proposed':
        if (data.release === 'proposed') this.#answer(aggregate, data.planId);
        break;
      case 'migration.started':
        if (this.#moods.flip(0.05))
          this.#soon(30_000, () => this.#choose(['migration.cancelled', 'migration.aborted'], aggregate, data.taskId));
        break;
      case 'migration.verifying':
        this.#interfere(aggregate, data.taskId, data.serverId);
        break;
      case 'migration.verified':
        if (this.#manual) this.#settle(aggregate, data.taskId);
        break;
      default:
    }
  }

  /** Brings back what Kronos has called damaged, and ends the moves of a log that is lost. */
  mend(): void {
    this.#sim.settle();
    for (const id of this.#checker.left()) {
      const one = this.#sim.cloud.servers.get(id);
      const vmState = this.#before.get(id);
      if (one?.taskState != null) continue;
      if (one === undefined || one.vmState === vmState) this.#checker.mended(id);
      else if (one.vmState === 'resized') this.#endResize(id, this.#moods.pick(['confirmResize', 'revertResize']));
      else if (vmState === 'active' || vmState === 'stopped')
        actIfPossible(this.#sim, { act: 'setServer', server: id, vmState });
    }
  }

  #ask(): void {
    if (this.#calm) return;
    const wishes = this.#wishes;
    const [from, to] = wishes.flip(0.5) ? (['old', 'new'] as const) : (['new', 'old'] as const);
    const flavorMap = wishes.flip(0.5) ? { any: `${to}.small`, [`${from}.small`]: `${to}.small` } : {};
    const limit = wishes.int(1, 4);
    this.#commands.append('cells.moveAsked', from, {
      from: [from],
      to,
      flavorMap,
      servers: null,
      project: null,
      limit,
    });
    this.#world.after(wishes.between(120_000, 600_000), () => this.#ask());
  }

  #answer(aggregate: string, planId: string): void {
    const answer = this.#moods.flip(0.9) ? 'plan.approved' : 'plan.rejected';
    this.#soon(60_000, () => this.#commands.append(answer, aggregate, { planId, steps: null }));
  }

  /** A user, and Nova itself, may be faster than Kronos. */
  #interfere(aggregate: string, taskId: string, server: string): void {
    const what = this.#calm ? 1 : this.#moods.next();
    if (what < 0.2) this.#soon(20_000, () => this.#endResize(server, what < 0.1 ? 'confirmResize' : 'revertResize'));
    else if (what < 0.24) this.#soon(20_000, () => actIfPossible(this.#sim, { act: 'deleteServer', server }));
    else if (what < 0.35)
      this.#soon(20_000, () => this.#choose(['migration.confirmAsked', 'migration.revertAsked'], aggregate, taskId));
  }

  #settle(aggregate: string, taskId: string): void {
    const answer = this.#moods.flip(0.6) ? 'migration.confirmAsked' : 'migration.revertAsked';
    this.#soon(120_000, () => this.#commands.append(answer, aggregate, { taskId }));
  }

  #choose(types: readonly string[], aggregate: string, taskId: string): void {
    this.#commands.append(this.#moods.pick(types), aggregate, { taskId });
  }

  #endResize(server: string, how: 'confirmResize' | 'revertResize'): void {
    try {
      this.#sim.cloud.endResize(this.#world.wall, USER, server, how);
    } catch {
      // Nova refuses it, or the server is gone.
    }
  }

  #soon(meanMs: number, act: () => void): void {
    this.#world.after(this.#moods.exponential(meanMs), act);
  }
}
