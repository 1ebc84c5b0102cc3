/**
 * Which servers the cloud has and where, folded from reads of Nova and from notifications. Pure.
 *
 * The facts about a server always come from a read. A notification says that a server changed, so it is read again before the
 * next use; only that a server is deleted is believed at once, because that is final. So the order in which notifications
 * arrive does not matter, and one that comes twice or late costs at most a read. One that never comes is found by the
 * comparison.
 *
 * All times are milliseconds of one clock that never goes back, the reader's own. They order reads and receipts; Nova's
 * `updated` decides only between two reads that overlapped.
 */

/** The fields of a server that the fold needs; it keeps the others as they are. */
export interface InventoryServer {
  readonly id: string;
  /** Service host; null when it is on none (building, shelved offloaded, cell down). */
  readonly host: string | null;
  /** Nova's API status; DELETED and SOFT_DELETED are not in Nova's own list. */
  readonly status: string;
  /** Nova did not reach its cell, and so does not say where it is. */
  readonly cellDown: boolean;
  /** Nova's `updated`, ISO-8601, by the second. */
  readonly updatedAt: string | null;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** When a read was made. */
export interface ReadTimes {
  readonly beganMs: number;
  readonly endedMs: number;
}

export type KeptMode = 'changes' | 'notifications';

/**
 * Why something is read that a cycle alone would not have read.
 *
 * `start`: nothing is known yet, or nothing was read for long. `compared`: Nova's list of ids differs. `left`: a list of its host no longer has the server.
 * `tagged`: Nova's list of servers with a tag that opts out differs. `untrusted`: the host's notifications do not arrive, or
 * not for long enough. `many`: there is more to be read than one bulk read costs. `clock`: the reader's clock is wrong, so it
 * cannot ask for what changed since a time. `cell-down`: a cell was down, and lists that were read then lack its servers.
 */
export type ResyncReason = 'start' | 'compared' | 'left' | 'tagged' | 'untrusted' | 'many' | 'clock' | 'cell-down';

/** A notification of Nova about one server. */
export interface ServerNotified {
  readonly id: string;
  /** It says that the server is deleted (`instance.delete.end`). */
  readonly deleted: boolean;
  readonly receivedMs: number;
}

/** The next reads; all of them may be made at once. Nothing: the list can be used. */
export interface WantedReads {
  /** Every server of the cloud; then nothing else is wanted. */
  readonly bulk: ResyncReason | null;
  /** Read the changes since this time, less the overlap. */
  readonly changesSinceMs: number | null;
  /** The ids on each host. */
  readonly comparison: boolean;
  /** The ids of the servers with a tag that opts out. */
  readonly tagged: boolean;
  /** Every server of these hosts. */
  readonly hosts: ReadonlyMap<string, ResyncReason>;
  /** These servers, one by one; `null`: a notification named it, or its cell was down. */
  readonly servers: ReadonlyMap<string, ResyncReason | null>;
}

export interface AskedRead {
  readonly mode: KeptMode;
  /** When the cycle began: what must be read each cycle is read after this. */
  readonly cycleMs: number;
  /** `[inventory] sync_interval`. */
  readonly syncIntervalMs: number;
  /** Every host of the cloud. */
  readonly hosts: readonly string[];
}

/** The source of one host's list. */
export interface HostSource {
  /** `api`: it was read this cycle. */
  readonly from: 'api' | KeptMode;
  /** When the whole list was last read from Nova, or compared with Nova's. */
  readonly checkedMs: number;
}

interface Known<S> extends ReadTimes {
  readonly server: S;
  readonly updatedMs: number;
}

/** More reads of single servers, or of whole hosts, than this are not made: one `changes-since`, or one bulk read, is cheaper. */
export interface ReadLimits {
  readonly servers: number;
  readonly hosts: number;
}
const LIMITS: ReadLimits = { servers: 20, hosts: 16 };
/** Deleted servers are remembered for this long, in case an older read still shows them. */
const TOMBSTONE_MS = 3_600_000;
const STALE_MS = 3_600_000;

const GONE: ReadonlySet<string> = new Set(['DELETED', 'SOFT_DELETED']);
const NEVER = Number.NEGATIVE_INFINITY;

/** The servers of one cloud. `S` is the server as its reader has it. */
export class ServerInventory<S extends InventoryServer> {
  readonly #optOut: ReadonlySet<string>;
  readonly #limits: ReadLimits;
  readonly #records = new Map<string, Known<S>>();
  /** Deleted for good, and when that was heard. */
  readonly #deleted = new Map<string, number>();
  /** Notified and not read since: the time of the receipt. */
  readonly #notified = new Map<string, number>();
  /** When the newest complete read of the cloud, or of one host, began. */
  #bulkMs = NEVER;
  readonly #hostMs = new Map<string, number>();
  /** Everything that changed before this time has been read. */
  #changesMs = NEVER;
  #compared: { readonly beganMs: number; readonly hosts: ReadonlyMap<string, ReadonlySet<string>> } | null = null;
  #tagged: { readonly beganMs: number; readonly ids: ReadonlySet<string> } | null = null;
  /** By host: when its nova-compute was first heard since trust was lost. */
  readonly #heard = new Map<string, number>();
  /** Notifications may have been lost up to this time; a comparison finds them. */
  #doubtedMs = NEVER;
  /** Whether Nova reaches every cell in this cycle, and whether a list that was read may lack the servers of a cell. */
  #reached = true;
  #lacking = false;

  /**
   * @param optOut tags and metadata keys that opt a server out. Nova does not count every change of them as a change of the
   * server: `updated` stays when a tag is set or removed, and when a metadata key is removed.
   */
  constructor(optOut: readonly string[], limits = LIMITS) {
    this.#optOut = new Set(optOut);
    this.#limits = limits;
  }

  /** Every server of the cloud. One that it lacks is not there, unless it was read or notified later. */
  bulkRead(servers: readonly S[], times: ReadTimes): void {
    for (const server of servers) this.#read(server, times);
    if (times.beganMs <= this.#bulkMs) return;
    this.#bulkMs = times.beganMs;
    this.#changesMs = Math.max(this.#changesMs, times.beganMs);
    const listed = new Set(servers.map((server) => server.id));
    for (const [id, { beganMs }] of this.#records)
      if (beganMs < times.beganMs && !listed.has(id)) this.#records.delete(id);
    for (const [id, at] of this.#notified) if (at <= times.beganMs && !this.#records.has(id)) this.#notified.delete(id);
    if (this.#reached) this.#lacking = false;
  }

  /**
   * Notes before the reads of a cycle whether Nova reaches every cell. While it does not, its lists silently lack the servers of that
   * cell, and no later list of changes has the changes of that time.
   */
  cellsReached({ all }: { readonly all: boolean }): void {
    this.#reached = all;
    if (!all) this.#lacking = true;
  }

  /** Every server of one host. */
  hostRead(host: string, servers: readonly S[], times: ReadTimes): void {
    for (const server of servers) this.#read(server, times);
    this.#hostMs.set(host, Math.max(times.beganMs, this.#hostMs.get(host) ?? NEVER));
  }

  /** The servers that changed since a time, the deleted ones too. */
  changesRead(sinceMs: number, servers: readonly S[], times: ReadTimes): void {
    for (const server of servers) this.#read(server, times);
    if (sinceMs <= this.#changesMs) this.#changesMs = Math.max(this.#changesMs, times.beganMs);
  }

  /** One server; null: Nova has none with this id. */
  serverRead(id: string, server: S | null, times: ReadTimes): void {
    if (server !== null) this.#read(server, times);
    else this.#delete(id, times.endedMs);
  }

  /** The ids on each host as Nova lists them; a host that it does not name has none. */
  compared(hosts: ReadonlyMap<string, ReadonlySet<string>>, { beganMs }: ReadTimes): void {
    if (this.#compared === null || beganMs >= this.#compared.beganMs) this.#compared = { beganMs, hosts };
    for (const [id, at] of this.#deleted) if (at < beganMs - TOMBSTONE_MS) this.#deleted.delete(id);
  }

  /** The ids of all servers with a tag that opts out. */
  taggedRead(ids: ReadonlySet<string>, { beganMs }: ReadTimes): void {
    if (this.#tagged === null || beganMs >= this.#tagged.beganMs) this.#tagged = { beganMs, ids };
  }

  notified({ id, deleted, receivedMs }: ServerNotified): void {
    if (deleted) this.#delete(id, receivedMs);
    else if (!this.#deleted.has(id)) this.#notified.set(id, Math.max(receivedMs, this.#notified.get(id) ?? NEVER));
  }

  /** A versioned notification came from the nova-compute of this host. */
  heard(host: string, receivedMs: number): void {
    this.#heard.set(host, Math.min(receivedMs, this.#heard.get(host) ?? Number.POSITIVE_INFINITY));
  }

  /** Notifications may have been lost up to this time: no host that was heard before it is trusted any more. */
  distrust(atMs: number): void {
    for (const [host, heardMs] of this.#heard) if (heardMs <= atMs) this.#heard.delete(host);
  }

  /** Notifications of one host may have been lost: it is not trusted until it is heard again. */
  distrustHost(host: string): void {
    this.#heard.delete(host);
  }

  /** Some notifications may have been lost up to this time: Nova's list of ids is compared before the next use. */
  doubt(atMs: number): void {
    this.#doubtedMs = Math.max(atMs, this.#doubtedMs);
  }

  /** Whether the notifications of a host arrive, and its whole list was read since the first of them. */
  trusted(host: string): boolean {
    const heardMs = this.#heard.get(host);
    return heardMs !== undefined && this.#completeMs(host) >= heardMs;
  }

  #isTrusted(host: string, cycleMs: number): boolean {
    return this.trusted(host) || this.#completeMs(host) >= cycleMs;
  }

  /** The reads that the list needs before its use in this cycle. */
  wanted({ mode, cycleMs, syncIntervalMs, hosts }: AskedRead): WantedReads {
    const bulk = (reason: ResyncReason): WantedReads => ({ ...nothing, bulk: reason });
    const anew = this.#anew(cycleMs, syncIntervalMs);
    if (anew !== null) return bulk(anew);
    const due = this.#due({ mode, cycleMs, syncIntervalMs });
    if (due !== null) return due;

    const servers = this.#unsure(cycleMs);
    // The servers that notifications named have most likely changed, and then one list has them all.
    if (servers.size > this.#limits.servers && this.#changesMs < cycleMs)
      return { ...nothing, changesSinceMs: this.#changesMs };

    const whole = this.#differing();
    for (const host of mode === 'notifications' ? hosts : [])
      if (!this.#isTrusted(host, cycleMs)) whole.set(host, 'untrusted');
    if ((servers.size > this.#limits.servers || whole.size > this.#limits.hosts) && this.#bulkMs < cycleMs)
      return bulk('many');
    if (whole.size > 0) return { ...nothing, hosts: whole };
    for (const id of this.#optedOut()) servers.set(id, servers.get(id) ?? null);
    return servers.size > 0 ? { ...nothing, servers } : nothing;
  }

  /** Why every server is read: a list of the changes would lack some of them, or be no shorter; null: that list suffices. */
  #anew(cycleMs: number, syncIntervalMs: number): ResyncReason | null {
    if (cycleMs - this.#changesMs > Math.max(STALE_MS, 2 * syncIntervalMs)) return 'start';
    return this.#lacking && this.#reached ? 'cell-down' : null;
  }

  /** The reads that each cycle needs, or whose time has come; null: none. */
  #due({ mode, cycleMs, syncIntervalMs }: Omit<AskedRead, 'hosts'>): WantedReads | null {
    // A comparison shows differences that the changes since explain; those changes are read with it.
    const comparedMs = Math.max(this.#bulkMs, this.#compared?.beganMs ?? NEVER);
    const due = cycleMs - comparedMs >= syncIntervalMs || comparedMs < Math.min(this.#doubtedMs, cycleMs);
    const often = mode === 'changes' || due;
    const eachCycle = often && this.#changesMs < cycleMs;
    const tagged = often && this.#optOut.size > 0 && this.#olderThan(this.#tagged, cycleMs);
    if (!eachCycle && !due && !tagged) return null;
    return { ...nothing, changesSinceMs: eachCycle || due ? this.#changesMs : null, comparison: due, tagged };
  }

  /** Nova's own list, as far as it is known. Only good once nothing is wanted. */
  list(): S[] {
    const servers: S[] = [];
    for (const { server } of this.#records.values()) if (!GONE.has(server.status)) servers.push(server);
    return servers;
  }

  /** The ids of the servers on each host. */
  placement(): Map<string, Set<string>> {
    const hosts = new Map<string, Set<string>>();
    for (const { server } of this.#records.values()) {
      if (server.host === null || GONE.has(server.status)) continue;
      const ids = hosts.get(server.host);
      if (ids === undefined) hosts.set(server.host, new Set([server.id]));
      else ids.add(server.id);
    }
    return hosts;
  }

  /** The source of a host's list in the cycle that began at this time. */
  sourceOf(host: string, { mode, cycleMs }: Pick<AskedRead, 'mode' | 'cycleMs'>): HostSource {
    const completeMs = this.#completeMs(host);
    const checkedMs = Math.max(completeMs, this.#compared?.beganMs ?? NEVER);
    return { from: completeMs >= cycleMs ? 'api' : mode, checkedMs };
  }

  #completeMs(host: string): number {
    return Math.max(this.#bulkMs, this.#hostMs.get(host) ?? NEVER);
  }

  #olderThan(read: { readonly beganMs: number } | null, cycleMs: number): boolean {
    return (read?.beganMs ?? NEVER) < cycleMs;
  }

  #delete(id: string, atMs: number): void {
    this.#deleted.set(id, Math.max(atMs, this.#deleted.get(id) ?? NEVER));
    this.#records.delete(id);
    this.#notified.delete(id);
  }

  #read(server: S, times: ReadTimes): void {
    const { id } = server;
    if (server.status === 'DELETED') {
      this.#delete(id, times.endedMs);
      return;
    }
    if (this.#deleted.has(id)) return;
    const known = this.#records.get(id);
    if (known === undefined) {
      // A complete list that began later does not have it.
      if (times.beganMs < this.#bulkMs) return;
    }
    const updatedMs = server.updatedAt === null ? NEVER : Date.parse(server.updatedAt);
    const record = { server, updatedMs, beganMs: times.beganMs, endedMs: times.endedMs };
    if (known !== undefined && !supersedes(record, known)) return;
    this.#records.set(id, record);
    const notifiedMs = this.#notified.get(id);
    if (notifiedMs !== undefined && notifiedMs <= times.beganMs) this.#notified.delete(id);
  }

  /**
   * The servers that cannot be used as they are known, and why. What was notified since the cycle began is for the next cycle, as a
   * change after any read would be: else a busy cloud would never have been read.
   */
  #unsure(cycleMs: number): Map<string, ResyncReason | null> {
    const unsure = new Map<string, ResyncReason | null>();
    for (const [id, record] of this.#records) {
      const reason = this.#doubtOf(id, record);
      if (reason !== null) unsure.set(id, reason);
      // No notification and no change tells when Nova reaches its cell again.
      else if (record.server.cellDown && record.beganMs < cycleMs) unsure.set(id, null);
    }
    // The lists of the host lack it, and the comparison has it: it is deleted softly, or came since.
    for (const ids of this.#compared?.hosts.values() ?? [])
      for (const id of ids) if (!this.#records.has(id) && !this.#deleted.has(id)) unsure.set(id, 'compared');
    for (const [id, receivedMs] of this.#notified) if (receivedMs <= cycleMs) unsure.set(id, null);
    return unsure;
  }

  /** Why a server cannot be used as it is known; null: it can. */
  #doubtOf(id: string, { server, beganMs }: Known<S>): ResyncReason | null {
    const { host, status, tags } = server;
    if (GONE.has(status)) return null;
    if (host !== null && beganMs < (this.#hostMs.get(host) ?? NEVER)) return 'left';
    // One that is deleted before it has a host leaves no trace in a list of changes.
    if (host === null && status === 'BUILD' && this.#olderThan({ beganMs }, this.#compared?.beganMs ?? NEVER))
      return 'compared';
    const tagged = this.#tagged;
    if (tagged === null || beganMs >= tagged.beganMs) return null;
    return tags.some((tag) => this.#optOut.has(tag)) === tagged.ids.has(id) ? null : 'tagged';
  }

  /** The servers that metadata opted out before the newest comparison: nothing else tells when the key is removed. */
  #optedOut(): string[] {
    const comparedMs = this.#compared?.beganMs ?? NEVER;
    const ids: string[] = [];
    for (const [id, { server, beganMs }] of this.#records) {
      if (beganMs >= comparedMs || GONE.has(server.status)) continue;
      for (const name of this.#optOut)
        if (Object.hasOwn(server.metadata, name)) {
          ids.push(id);
          break;
        }
    }
    return ids;
  }

  /** Whether a server that a comparison saw on a host is not known there, and no later read explains it. */
  #isMissed(id: string, host: string, comparedMs: number): boolean {
    const known = this.#records.get(id);
    if (known === undefined) return !this.#deleted.has(id);
    return known.beganMs < comparedMs && known.server.host !== host;
  }

  /** The hosts whose list is not the one that the newest comparison saw. */
  #differing(): Map<string, ResyncReason> {
    const differing = new Map<string, ResyncReason>();
    const compared = this.#compared;
    if (compared === null) return differing;
    const open = (host: string): boolean => this.#completeMs(host) < compared.beganMs;
    for (const [host, ids] of compared.hosts) {
      if (!open(host)) continue;
      for (const id of ids) {
        if (this.#isMissed(id, host, compared.beganMs)) differing.set(host, 'compared');
      }
    }
    for (const [id, { server, beganMs }] of this.#records) {
      const { host, status } = server;
      if (host === null || beganMs >= compared.beganMs || GONE.has(status) || !open(host)) continue;
      if (compared.hosts.get(host)?.has(id) !== true) differing.set(host, 'compared');
    }
    return differing;
  }
}

const nothing: WantedReads = {
  bulk: null,
  changesSinceMs: null,
  comparison: false,
  tagged: false,
  hosts: new Map(),
  servers: new Map(),
};

/** Whether there is nothing to be read. */
export const isNothing = (wanted: WantedReads): boolean =>
  wanted.bulk === null &&
  wanted.changesSinceMs === null &&
  !wanted.comparison &&
  !wanted.tagged &&
  wanted.hosts.size === 0 &&
  wanted.servers.size === 0;

/** Of two reads that did not overlap the later one is right; of two that did, the one that saw the later change. */
function supersedes(one: Known<unknown>, known: Known<unknown>): boolean {
  if (one.beganMs >= known.endedMs) return true;
  if (one.endedMs <= known.beganMs) return false;
  return one.updatedMs > known.updatedMs || (one.updatedMs === known.updatedMs && one.beganMs >= known.beganMs);
}
