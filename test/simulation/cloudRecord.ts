/** The simulated cloud's own record, as the checker reads it. */
import type { Cloud } from '@kronos/simcloud';
import type { CloudMigration, CloudRecord } from './checker/checker.ts';
import { isOver } from './people/operator.ts';

/** Faults after which a series cannot be used, from the moment at which they are set. */
const UNUSABLE = new Set(['missing', 'nan']);

/** The metrics of VMs by which the policies of a run balance: options.ts. */
const VM_METRICS = ['vm_cpu_cores', 'vm_mem_mb'];

/** Decisions see a change of an aggregate within this time. */
const CHANGED_MS = 1_800_000;

type Migration = Cloud['migrations'][number];

export class SimulatedRecord implements CloudRecord {
  readonly #cloud: Cloud;
  /** Requests that the log in force accounts for. */
  readonly #ours = new Set<string>();
  /** Migrations that nobody in Nova works on any more. They stay so when their source dies another time. */
  readonly #abandoned = new Set<number>();

  constructor(cloud: Cloud) {
    this.#cloud = cloud;
  }

  /** Nova has taken this request from a service of Kronos. */
  requested(requestId: string): void {
    this.#ours.add(requestId);
  }

  /** The request was made by a log that is lost: it is none of the log in its place. */
  disown(requestId: string): void {
    this.#ours.delete(requestId);
  }

  /** Another log is in force from now on. */
  disownAll(): void {
    this.#ours.clear();
  }

  host(server: string): string | null {
    return this.#cloud.servers.get(server)?.host ?? null;
  }

  companions(server: string, host: string): { readonly policy: string; readonly members: readonly string[] } | null {
    const group = this.#cloud.groupOf.get(server);
    if (group === undefined) return null;
    const members: string[] = [];
    for (const [id, each] of this.#cloud.groupOf)
      if (each === group && id !== server && this.#cloud.servers.get(id)?.host === host) members.push(id);
    return { policy: group.policy, members };
  }

  open(name: string): boolean {
    const host = this.#cloud.hosts.get(name);
    return host?.up === true && !host.disabled && !host.forcedDown;
  }

  aggregatesWith(host: string): readonly string[] {
    const own = this.#cloud.scenario.aggregates.map(({ name }) => name);
    return own.filter((name) => this.#cloud.aggregate(name).hosts.includes(host));
  }

  reachable(host: string): boolean {
    return !this.#cloud.unreachable.has(this.#cloud.host(host).cell);
  }

  hypervisorVersion(host: string): number {
    return this.#cloud.host(host).hypervisorVersion;
  }

  disabled(host: string): boolean {
    return this.#cloud.host(host).disabled;
  }

  shape(server: string): string | null {
    const found = this.#cloud.servers.get(server);
    return found === undefined ? null : `${found.flavor.name} ${found.imageId === null ? 'volume' : 'image'}`;
  }

  cellsFit(server: string, host: string): boolean {
    const found = this.#cloud.servers.get(server);
    return found === undefined || this.#cloud.cellsFor(host, found.flavor) !== null;
  }

  taskState(server: string): string | null {
    return this.#cloud.servers.get(server)?.taskState ?? null;
  }

  unmeasuredSince(host: string): number | null {
    return this.#unusableSince(host, null);
  }

  unprofiledSince(server: string): number | null {
    const host = this.host(server) ?? '';
    const since = VM_METRICS.flatMap((metric) => this.#unusableSince(host, metric) ?? []);
    return since.length === 0 ? null : Math.min(...since);
  }

  /** @param name null: of no metric alone */
  #unusableSince(host: string, name: string | null): number | null {
    const inForce = this.#cloud.seriesFaults.filter(
      ({ metric, labels, untilMs }) =>
        (metric === undefined || metric === name) && (labels.host ?? host) === host && untilMs === null,
    );
    // The last one decides what Prometheus shows; a stale sample of before is usable for minutes.
    const usable = inForce.findLastIndex(({ kind }) => !UNUSABLE.has(kind));
    return inForce[usable + 1]?.fromMs ?? null;
  }

  hostsOf(name: string): readonly string[] {
    // Decisions of the last minutes may have seen either.
    const { updatedMs } = this.#cloud.aggregate(name);
    if (updatedMs !== null && this.#cloud.nowMs - updatedMs < CHANGED_MS) return [];
    return this.#cloud.aggregate(name).hosts;
  }

  migrations(): readonly CloudMigration[] {
    return this.#cloud.migrations.map((one) => this.#row(one));
  }

  running(): readonly CloudMigration[] {
    return this.#cloud.migrations
      .filter((one) => !isOver(one.status) && !this.#isAbandoned(one))
      .map((one) => this.#row(one));
  }

  #row(one: Migration): CloudMigration {
    return {
      id: one.id,
      server: one.serverUuid,
      source: one.source,
      dest: one.dest ?? one.chosen,
      status: !isOver(one.status) && this.#isAbandoned(one) ? 'abandoned' : one.status,
      createdMs: one.createdMs,
      byKronos: this.#ours.has(one.requestId),
    };
  }

  #isAbandoned(one: Migration): boolean {
    if (!this.#abandoned.has(one.id) && this.#cloud.abandoned(one)) this.#abandoned.add(one.id);
    return this.#abandoned.has(one.id);
  }
}
