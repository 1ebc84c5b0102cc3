/** The people who approve and reject plans. */
import type { Message, Step } from '@kronos/contracts';
import type { Chance } from '../chance.ts';
import type { World } from '../world.ts';
import type { Commands } from './commands.ts';

const APPROVED = 0.85;
const UNANSWERED = 0.1;
/** Share of the answers that come when the plan has expired, and mostly no other has taken its place. */
const LATE = 0.2;
const MEAN_MS = 120_000;
/** Share of the answers that come when the windows of some moves of the plan have closed and those of others have not. */
const BETWEEN = 0.5;
/** Such an answer comes at most this long after the first window has closed. */
const BETWEEN_MS = 60_000;

export class Approvers {
  readonly #world: World;
  readonly #chance: Chance;
  /** A source of its own: a plan whose windows close together draws nothing from it. */
  readonly #edges: Chance;
  readonly #ttlMs: number;
  readonly #commands: Commands;

  /** @param ttlMs how long a plan waits for an answer */
  constructor(world: World, chance: Chance, ttlMs: number, commands: Commands) {
    this.#world = world;
    this.#chance = chance.fork('approvals');
    this.#edges = chance.fork('edges');
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
    const late = chance.flip(LATE) ? this.#ttlMs + chance.between(6_000, 60_000) : chance.exponential(MEAN_MS);
    const afterMs = this.#betweenMs(message.data.plan?.steps ?? []) ?? late;
    this.#world.after(afterMs, () => this.#commands.append(answer, aggregate, { planId, steps: null }));
  }

  /** Until the answer to a plan whose windows close one after the other, after the first of them; null: it comes at another time. */
  #betweenMs(steps: readonly Pick<Step, 'startBefore'>[]): number | null {
    const leftMs = steps.map(({ startBefore }) =>
      startBefore === undefined ? Number.POSITIVE_INFINITY : Date.parse(startBefore) - this.#world.wall,
    );
    const open = leftMs.filter((ms) => ms > 0);
    const [firstMs, lastMs] = [Math.min(...open), Math.min(this.#ttlMs, Math.max(...open))];
    if (!(firstMs < lastMs) || !this.#edges.flip(BETWEEN)) return null;
    return this.#edges.between(firstMs, Math.min(lastMs, firstMs + BETWEEN_MS));
  }
}
