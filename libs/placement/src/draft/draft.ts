import type { Phase, Reason, Stuck } from '@kronos/contracts';
import { byte, float, int, item } from '../base/array.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { NO_REPAIR, Room } from '../cluster/constraints.ts';
import { shift } from '../cluster/measure.ts';
import { codeNumber, type ReasonCode, RefusalCounts } from '../reasons.ts';

/** One migration of a plan in the making. */
export type Move = {
  readonly vm: number;
  readonly from: number;
  readonly to: number;
  readonly phase: Phase;
  /** First half of a move through a third host. */
  readonly parking: boolean;
  readonly why: ReasonCode;
  /** The affinity group that the move repairs, or NO_REPAIR. */
  readonly repairs: number;
};

/** The purpose of a move. */
type MoveFor = Pick<Move, 'phase' | 'why'> & Partial<Pick<Move, 'repairs' | 'parking'>>;

/** A plan in the making: each pass starts from the state that the pass before it left. */
export class Draft {
  readonly cluster: Cluster;
  readonly place: Int32Array;
  readonly score: Float64Array;
  readonly fullness: Float64Array;
  /** Cautious: an accepted move is legal in any order. */
  readonly room: Room;
  readonly moves: Move[] = [];
  /** 1 for VMs that the plan moves already. */
  readonly moved: Uint8Array;
  /** VMs whose moves would take the room for a failure. */
  readonly held = new Set<number>();
  budget: number;
  readonly refusals = new RefusalCounts();
  evaluated = 0;
  readonly warnings: Reason[] = [];
  readonly stuck: Stuck[] = [];

  /** Of each move, in their order. */
  readonly #undo: {
    readonly values: readonly number[];
    readonly fullness: readonly number[];
    readonly moved: number;
  }[] = [];

  constructor(cluster: Cluster, budget: number) {
    this.cluster = cluster;
    this.budget = budget;
    this.place = Int32Array.from(cluster.vmHost);
    this.score = Float64Array.from(cluster.score);
    this.fullness = Float64Array.from(cluster.fullness);
    this.room = new Room(cluster, { departuresFree: false });
    this.moved = new Uint8Array(cluster.V);
  }

  /** True when nothing about the VM itself forbids a move. */
  movable(vm: number): boolean {
    return this.refusalOf(vm) === 0;
  }

  /** True when nothing about the VM itself forbids that it leaves a disabled host. {@link Cluster.evacuationOnly} does not apply there. */
  evacuable(vm: number): boolean {
    return int(this.cluster.vmRefusal, vm) === 0 && this.moved[vm] === 0;
  }

  /** Code number of the reason that the VM itself may not move; 0 when it may. */
  refusalOf(vm: number): number {
    const { vmRefusal, evacuationOnly } = this.cluster;
    if (int(vmRefusal, vm) !== 0) return int(vmRefusal, vm);
    if (this.moved[vm] === 1) return codeNumber['vm-in-plan'];
    if (this.held.has(vm)) return codeNumber['failover-room'];
    return int(evacuationOnly, vm);
  }

  /** Names a VM that must move in this phase and cannot. */
  addStuck(vm: number, phase: Stuck['phase'], reason: Reason): void {
    const { vmIds, vmNames, hostNames } = this.cluster;
    const host = item(hostNames, int(this.place, vm));
    this.stuck.push({ serverId: item(vmIds, vm), serverName: item(vmNames, vm), host, phase, reason });
  }

  apply(vm: number, to: number, { phase, why, repairs = NO_REPAIR, parking = false }: MoveFor): void {
    const from = int(this.place, vm);
    this.moves.push({ vm, from, to, phase, parking, why, repairs });
    this.#undo.push({
      values: this.#pair(this.score, from, to),
      fullness: this.#pair(this.fullness, from, to),
      moved: byte(this.moved, vm),
    });
    this.room.move(vm, from, to);
    this.place[vm] = to;
    shift(this.cluster, this.score, vm, from, to);
    shift(this.cluster, this.fullness, vm, from, to);
    this.moved[vm] = 1;
    this.budget -= 1;
  }

  /** Undoes the moves after the first `length`. The state is the same as before, bit by bit. */
  rollback(length: number): void {
    const undone = this.moves.splice(length);
    const saved = this.#undo.splice(length);
    for (let i = undone.length - 1; i >= 0; i--) {
      const { vm, from, to } = item(undone, i);
      const { values, fullness, moved } = item(saved, i);
      this.room.undo(vm, from, to);
      this.place[vm] = from;
      this.#restore(this.score, from, to, values);
      this.#restore(this.fullness, from, to, fullness);
      this.moved[vm] = moved;
      this.budget += 1;
    }
  }

  #pair(values: Float64Array, from: number, to: number): number[] {
    const { P } = this.cluster;
    const pair: number[] = [];
    for (let p = 0; p < P; p++) pair.push(float(values, from * P + p));
    for (let p = 0; p < P; p++) pair.push(float(values, to * P + p));
    return pair;
  }

  #restore(values: Float64Array, from: number, to: number, saved: readonly number[]): void {
    const { P } = this.cluster;
    for (let p = 0; p < P; p++) {
      values[from * P + p] = item(saved, p);
      values[to * P + p] = item(saved, P + p);
    }
  }
}
