import type { TestContext } from 'vitest';

/** A cloud under the contract suite, and the operations that its APIs do not offer. */
export interface CloudUnderTest {
  readonly name: string;
  /** `http://.../v3` */
  readonly identity: string;
  readonly prometheus: string;
  readonly username: string;
  readonly password: string;
  readonly project: string;
  /** Service hosts of one cell, enabled and up, at least six. */
  readonly hosts: readonly [string, string, string, string, string, string, ...string[]];
  /** A host of another cell; null when there is one cell only. */
  readonly foreignHost: string | null;
  readonly imageRef: string;
  /** A flavor of 2 vCPUs, 4096 MB and 1 GB of disk. */
  readonly flavorRef: string;
  /** 4 vCPUs, 8192 MB and 1 GB of disk, which every host takes. */
  readonly largerFlavorRef: string;
  /** Like `flavorRef`, but only the host of the other cell takes it. */
  readonly foreignFlavorRef: string;
  /** 2 vCPUs, 4096 MB and no disk. */
  readonly disklessFlavorRef: string;
  /** Limit for things that happen by themselves, milliseconds. */
  readonly patienceMs: number;
  /** Interval of the looks at such a thing, milliseconds. A look takes a tenth of a second of a real cloud's CPU. */
  readonly lookEveryMs: number;
  readonly applicationCredential: { readonly id: string; readonly secret: string };
  /** A user with one role on the project. */
  readonly person: { readonly username: string; readonly password: string };
  /** Takes the role from that user, or gives it back. */
  takeRole(taken: boolean): Promise<void>;
  /** See the faults of `test/openstack/bed`; null mends. */
  fault(server: string, fault: Fault | null): Promise<void>;
  /** Sets the power state that Nova has of the server, by its number. */
  power(server: string, state: number): Promise<void>;
  /** The host refuses every pre-check as destination. */
  refuse(host: string, refuses: boolean): Promise<void>;
  /** The hook of its hypervisor refuses every guest that arrives, after the pre-check and before anything is copied. */
  hook(host: string, refuses: boolean): Promise<void>;
  /** Its nova-compute stops or resumes its reports; returns once Nova has noticed. */
  stop(host: string, stopped: boolean): Promise<void>;
  /** Kills its nova-compute, in the middle of its work. */
  kill(host: string): Promise<void>;
  /** Starts a new nova-compute on a host after a kill; returns once Nova calls it up. */
  start(host: string): Promise<void>;
  /**
   * nova-scheduler stands still, or goes on: meanwhile Nova accepts requests and chooses no host, which
   * nova-conductor waits for at most a minute. `reset` lets it go on.
   */
  holdScheduler(held: boolean): Promise<void>;
  /** Grants or withdraws the policy `compute:servers:resize:cross_cell`; `reset` grants it. */
  crossCells(allowed: boolean): Promise<void>;
  /** Nova's API no longer reaches the database of the other cell, or does again; `reset` mends it. The cell itself goes on. */
  reachForeignCell(reached: boolean): Promise<void>;
  /** Takes all free resources of the host in Placement, or gives them back. */
  fill(host: string, full: boolean): Promise<void>;
  /** Removes servers, groups, aggregates and faults; all hosts are enabled and up afterwards. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The host of another cell. A cloud with one cell has no such host, so a test of what Nova does between cells is skipped there:
 * the bed has two cells only with BED_CELL2_COMPUTES. The simulated cloud always has two.
 */
export function foreignHostOf({ foreignHost }: CloudUnderTest, context: TestContext): string {
  return foreignHost ?? context.skip('the cloud has one cell');
}

type Fault =
  | 'fail'
  | 'error'
  | 'hang'
  | 'refuse'
  | 'break'
  // Of a move between cells: the step that breaks, and a guest that takes long to start.
  | 'snapshot'
  | 'spawn'
  | 'confirm'
  | 'revert'
  | 'slow';
