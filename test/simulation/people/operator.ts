/** The decisions that an operator of the simulated cloud makes by looking at Nova. */
import type { Cloud, InProcessSim } from '@kronos/simcloud';
import type { CloudRecord } from '../checker/checker.ts';
import { actIfPossible } from '../simulatedCloud.ts';
import type { OpenTasks } from '../watch/openTasks.ts';
import type { World } from '../world.ts';
import type { Commands } from './commands.ts';

const OVER = new Set(['completed', 'failed', 'error', 'cancelled', 'confirmed', 'reverted', 'done']);
export const isOver = (status: string): boolean => OVER.has(status);

/** Migrations of a server that are not over. The row of a resize stays `finished` for ever when the state of its server was reset. */
const openMoves = (cloud: Cloud, uuid: string) =>
  (cloud.migrationsByServer.get(uuid) ?? []).filter(({ status }) => !isOver(status) && status !== 'finished');

/** An operator waits this long before a request counts as lost: nova-conductor can take minutes to begin an accepted one. */
export const STUCK_MS = 1_800_000;

/** Whether Nova calls a server migrating, its last action began at least `STUCK_MS` ago, and nobody in Nova works on it. */
export function isStuck(cloud: Cloud, uuid: string, nowMs: number): boolean {
  if (cloud.servers.get(uuid)?.taskState !== 'migrating') return false;
  const begunMs = cloud.actions.get(uuid)?.at(-1)?.startMs ?? 0;
  if (nowMs - begunMs < STUCK_MS) return false;
  return openMoves(cloud, uuid).every((one) => cloud.abandoned(one));
}

/** Whether nobody in Nova works on the moves of a server, and none that it has accepted is still to begin. */
export function isGivenUp(cloud: Cloud, uuid: string): boolean {
  const open = openMoves(cloud, uuid);
  if (open.length === 0 || !open.every((one) => cloud.abandoned(one))) return false;
  const asked = cloud.actions.get(uuid)?.findLast(({ action }) => action === 'live-migration')?.requestId;
  return cloud.migrationsByServer.get(uuid)?.some(({ requestId }) => requestId === asked) === true;
}

/** How often an operator looks for servers that are stuck. */
const LOOK_MS = 1_800_000;

export interface OperatorSetting {
  readonly world: World;
  readonly sim: InProcessSim;
  readonly record: CloudRecord;
  readonly openTasks: OpenTasks;
  readonly aggregates: readonly string[];
  readonly commands: Commands;
}

export class Operator {
  readonly #world: World;
  readonly #sim: InProcessSim;
  readonly #record: CloudRecord;
  readonly #openTasks: OpenTasks;
  readonly #aggregates: readonly string[];
  readonly #commands: Commands;

  constructor({ world, sim, record, openTasks, aggregates, commands }: OperatorSetting) {
    this.#world = world;
    this.#sim = sim;
    this.#record = record;
    this.#openTasks = openTasks;
    this.#aggregates = aggregates;
    this.#commands = commands;
  }

  /** Looks from time to time, and mends what never ends by itself. */
  begin(): void {
    this.#world.after(LOOK_MS, () => this.mend());
  }

  /**
   * A task that nova-conductor or a dead compute lost never ends by itself: the state of its server is reset. A server
   * that arrived on a dead host is in ERROR until an operator has looked. Looks again later.
   */
  mend(): void {
    this.closeAbandoned();
    const { cloud } = this.#sim;
    for (const { uuid: server, host, vmState } of cloud.servers.values()) {
      if (isStuck(cloud, server, this.#world.wall))
        actIfPossible(this.#sim, { act: 'setServer', server, taskState: null });
      if (vmState === 'error' && this.#record.open(host))
        actIfPossible(this.#sim, { act: 'setServer', server, vmState: 'active' });
    }
    this.begin();
  }

  /** Closes the tasks of servers that have abandoned migrations and no other that is under way or still to begin. */
  closeAbandoned(): void {
    this.#sim.settle();
    const { cloud } = this.#sim;
    for (const { taskId, server } of this.#openTasks.all()) {
      if (!isGivenUp(cloud, server)) continue;
      const aggregate = this.#aggregates.find((each) => taskId.startsWith(`${each}-`)) ?? '';
      this.#commands.append('migration.closed', aggregate, { taskId, force: true });
    }
  }
}
