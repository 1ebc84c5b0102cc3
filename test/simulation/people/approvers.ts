/** The people who approve and reject plans. */
import type { Message } from '@kronos/contracts';
import type { Chance } from '../chance.ts';
import type { World } from '../world.ts';
import type { Commands } from './commands.ts';

const APPROVED = 0.85;
const UNANSWERED = 0.1;
/** Share of the answers that come when the plan has expired, and mostly no other has taken its place. */
const LATE = 0.2;
const MEAN_MS = 120_000;

export class Approvers {
  readonly #world: World;
  readonly #chance: Chance;
  readonly #ttlMs: number;
  readonly #commands: Commands;

  /** @param ttlMs how long a plan waits for an answer */
  constructor(world: World, chance: Chance, ttlMs: number, commands: Commands) {
    this.#world = world;
    this.#chance = chance.fork('approvals');
    this.#ttlMs = ttlMs;
    this.#commands = commands;
  }

  stored(message: Message): void {
    if (message.type !== 'cycle.decided' || message.data.release !== 'proposed') return;
    const { aggregate } = message;
    const planId = message.data.snapshotId;
    const chance = this.#chance;
    const answer = chance.flip(APPROVED) ? 'plan.approved' : 'plan.rejected';
    if (chance.flip(UNANSWERED)) return;
    const afterMs = chance.flip(LATE) ? this.#ttlMs + chance.between(6_000, 60_000) : chance.exponential(MEAN_MS);
    this.#world.after(afterMs, () => this.#commands.append(answer, aggregate, { planId, steps: null }));
  }
}
