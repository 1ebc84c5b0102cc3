/** A cloud that the contract suite can be run against: what it needs besides the cloud's own APIs. */
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
  /** As `flavorRef`, and the host of the other cell alone takes it. */
  readonly foreignFlavorRef: string;
  /** 2 vCPUs, 4096 MB and no disk. */
  readonly disklessFlavorRef: string;
  /** How long a thing that comes by itself may take, milliseconds. */
  readonly patienceMs: number;
  /** The wait between two looks at such a thing, milliseconds: a look takes a tenth of a second of a real cloud's CPU. */
  readonly lookEveryMs: number;
  readonly applicationCredential: { readonly id: string; readonly secret: string };
  /** A person with one role on the project, and nothing else. */
  readonly person: { readonly username: string; readonly password: string };
  /** Takes the role from that person, or gives it back. */
  takeRole(taken: boolean): Promise<void>;
  /** See the faults of `test/openstack/bed`; null mends. */
  fault(server: string, fault: Fault | null): Promise<void>;
  /** As destination the host refuses every pre-check. */
  refuse(host: string, refuses: boolean): Promise<void>;
  /** Its nova-compute stops, or goes on, reporting; returns once Nova has noticed. */
  stop(host: string, stopped: boolean): Promise<void>;
  /** Its nova-compute is killed, in the middle of what it does. */
  kill(host: string): Promise<void>;
  /** A new nova-compute begins on a host whose own was killed; returns once Nova calls it up. */
  start(host: string): Promise<void>;
  /**
   * nova-scheduler stands still, or goes on: meanwhile Nova accepts requests and chooses no host, which
   * nova-conductor waits for at most a minute. `reset` lets it go on.
   */
  holdScheduler(held: boolean): Promise<void>;
  /** Grants or withdraws the policy `compute:servers:resize:cross_cell`; `reset` grants it. */
  crossCells(allowed: boolean): Promise<void>;
  /** Takes all that is left of the host in Placement, or gives it back. */
  fill(host: string, full: boolean): Promise<void>;
  /** No servers, groups, aggregates and faults; all hosts enabled and up. */
  reset(): Promise<void>;
  close(): Promise<void>;
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
