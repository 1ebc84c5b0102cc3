/**
 * Watches the inventory of the modes `changes` and `notifications`: what the cloud's servers were at each moment, what each scorer read
 * and heard, and after the run what its snapshots say. It shares no code with the services.
 */
import type { Snapshot } from '@kronos/contracts';
import type { Cloud } from '@kronos/simcloud';

type Server = Cloud['servers'] extends Map<string, infer S> ? S : never;

/** The state of a server from a moment on; null: it was not there. */
interface Was {
  readonly fromMs: number;
  readonly host: string | null;
  readonly state: string;
}

interface Read {
  /** Null: of every host. */
  readonly host: string | null;
  readonly beganMs: number;
}

interface Scorer {
  startedMs: number;
  readonly reads: Read[];
  /** When it lost the connection to RabbitMQ, and had it again; null: not yet. */
  readonly outages: { readonly fromMs: number; toMs: number | null }[];
  /** How far its clock is ahead from a moment on. */
  readonly skews: { readonly fromMs: number; readonly skewMs: number }[];
}

export interface Finding {
  readonly rule: 'stale' | 'untrusted';
  readonly text: string;
}

type Say = (rule: Finding['rule'], text: string) => void;

/** A snapshot under judgement: when its cycle began, by the true clock, when it was stored, and who took it. */
interface Judged {
  readonly snapshot: Snapshot;
  /** Its servers by id. */
  readonly shown: ReadonlyMap<string, Snapshot['servers'][number]>;
  readonly scorer: Scorer;
  readonly cycleMs: number;
  readonly storedMs: number;
  readonly say: Say;
}

/** A snapshot is not judged where the clock of its scorer was changed this long before, and so perhaps between two of its times. */
const UNSURE_MS = 1_200_000;
/** Problems by which a snapshot says itself that its servers are not all, and where: nothing is planned by it. */
const NOT_WHOLE: ReadonlySet<string> = new Set(['servers-unknown', 'servers-of-down-cell', 'server-vanished']);
/** Of a time in whole milliseconds, and of timers that are late. */
const TOLERANCE_MS = 50;
/** Times in a snapshot are whole ms, and two of them may come from two clocks of one process. */
const ROUNDING_MS = 5;

const RIGHT = { fromMs: Number.NEGATIVE_INFINITY, skewMs: 0 };

const stateOf = (server: Server, excluded: boolean): string =>
  [server.vmState, server.taskState, server.locked, server.flavor.name, excluded ? 'excluded' : ''].join(' ');

export class InventoryWitness {
  readonly #syncMs: number;
  readonly #optOut: ReadonlySet<string>;
  readonly #servers = new Map<string, Was[]>();
  readonly #scorers = new Map<string, Scorer>();
  /** By host: when its own nova-compute was heard on kronos.inventory. */
  readonly #heard = new Map<string, number[]>();
  readonly counts = new Map<string, number>();

  constructor(syncMs: number, optOut: readonly string[], servers: Iterable<Server>) {
    this.#syncMs = syncMs;
    this.#optOut = new Set(optOut);
    for (const server of servers) this.changed(server, Number.NEGATIVE_INFINITY);
  }

  // ---------------------------------------------------------------- what happens; times are true

  changed(server: Server, atMs: number): void {
    const was = this.#servers.get(server.uuid) ?? [];
    const excluded =
      server.tags.some((tag) => this.#optOut.has(tag)) ||
      Object.entries(server.metadata).some(([key, value]) => this.#optOut.has(key) && value !== 'false');
    const gone = server.deletedMs !== null;
    const now = {
      fromMs: atMs,
      host: gone || server.host === '' ? null : server.host,
      state: stateOf(server, excluded),
    };
    const last = was.at(-1);
    if (last?.host === now.host && last.state === now.state) return;
    was.push(now);
    this.#servers.set(server.uuid, was);
  }

  started(process: string, atMs: number): void {
    this.#scorers.set(process, {
      startedMs: atMs,
      reads: [],
      outages: [{ fromMs: atMs, toMs: null }],
      skews: [],
    });
  }

  consuming(process: string, yes: boolean, atMs: number): void {
    const outages = this.#scorers.get(process)?.outages;
    const last = outages?.at(-1);
    if (yes && last?.toMs === null) last.toMs = atMs;
    else if (!yes && last?.toMs !== null) outages?.push({ fromMs: atMs, toMs: null });
  }

  skewed(process: string, skewMs: number, atMs: number): void {
    this.#scorers.get(process)?.skews.push({ fromMs: atMs, skewMs });
  }

  /** A process was answered. `path`: from `/servers` on, with its query. */
  read(process: string, path: string, beganMs: number): void {
    const scorer = this.#scorers.get(process);
    if (scorer === undefined || !path.startsWith('/servers/detail?')) return;
    const query = new URLSearchParams(path.slice(path.indexOf('?') + 1));
    if (query.has('marker') || query.has('changes-since')) return;
    scorer.reads.push({ host: query.get('host'), beganMs });
  }

  /** A message was stored on kronos.inventory. */
  reported(data: Uint8Array, atMs: number): void {
    const body = JSON.parse(new TextDecoder().decode(data)) as {
      readonly data: {
        readonly host: string;
        readonly after: number;
        readonly notices: readonly { readonly own: boolean; readonly after: number }[];
      };
    };
    this.#count('reports');
    const { host, after, notices } = body.data;
    if (!notices.some((one) => one.own && one.after === after)) return;
    const heard = this.#heard.get(host);
    if (heard === undefined) this.#heard.set(host, [atMs]);
    else heard.push(atMs);
  }

  // ---------------------------------------------------------------- what a snapshot says

  /** @param process that took it; @param storedMs when it was stored, by the true clock */
  judge(snapshot: Snapshot, process: string, storedMs: number): Finding[] {
    const scorer = this.#scorers.get(process);
    if (scorer === undefined || snapshot.problems.some(({ code }) => NOT_WHOLE.has(code))) return [];
    const { fromMs: setMs, skewMs } = scorer.skews.findLast(({ fromMs }) => fromMs <= storedMs) ?? RIGHT;
    if (storedMs < setMs + UNSURE_MS) return [];
    const trueMs = (text: string): number => Date.parse(text) - skewMs - TOLERANCE_MS;
    const found: Finding[] = [];
    const say: Say = (rule, text) => void found.push({ rule, text: `${snapshot.id}: ${text}` });
    this.#count('snapshots');
    const shown = new Map(snapshot.servers.map((one) => [one.id, one]));
    const judged: Judged = { snapshot, shown, scorer, cycleMs: trueMs(snapshot.observedFrom), storedMs, say };
    const checked = this.#judgeLists(judged, trueMs);
    this.#judgeShown(judged, checked);
    this.#judgeMissing(judged, checked);
    return found;
  }

  /** Judges how old the lists are and where they are from. Returns when the list of each host was compared with Nova. */
  #judgeLists(judged: Judged, trueMs: (text: string) => number): ReadonlyMap<string, number> {
    const { snapshot, scorer, cycleMs, storedMs, say } = judged;
    const checked = new Map<string, number>();
    for (const { name, listing } of snapshot.hosts) {
      if (listing === undefined) continue;
      const checkedMs = trueMs(listing.checkedAt);
      checked.set(name, checkedMs);
      this.#count(`from ${listing.from}`);
      if (cycleMs - checkedMs > this.#syncMs + ROUNDING_MS)
        say('stale', `the list of ${name} was compared ${Math.round((cycleMs - checkedMs) / 1000)} s before`);
      const whole = (since: number): boolean =>
        scorer.reads.some(
          (one) => (one.host === null || one.host === name) && one.beganMs >= since && one.beganMs <= storedMs,
        );
      if (listing.from === 'api' && !whole(cycleMs))
        say('untrusted', `the list of ${name} is said to be read, and was not`);
      if (listing.from === 'notifications') this.#trusted(judged, name, whole);
    }
    return checked;
  }

  /** Each server was as it is shown, at a time since its list was compared. */
  #judgeShown({ shown, cycleMs, storedMs, say }: Judged, checked: ReadonlyMap<string, number>): void {
    for (const one of shown.values()) {
      const sinceMs = checked.get(one.host);
      if (sinceMs === undefined || this.#isTrue(one, checked, cycleMs, storedMs)) continue;
      say(
        'stale',
        `${one.id} on ${one.host} is ${one.vmState} ${one.taskState}, which it was not since ${when(sinceMs)}`,
      );
    }
  }

  /** No server is missing that has been on its host since the list was compared. */
  #judgeMissing({ shown, storedMs, say }: Judged, checked: ReadonlyMap<string, number>): void {
    for (const id of this.#servers.keys()) {
      if (shown.has(id)) continue;
      const was = this.#during(id, Number.NEGATIVE_INFINITY, storedMs);
      const host = was.at(-1)?.host ?? null;
      const sinceMs = host === null ? undefined : checked.get(host);
      if (sinceMs === undefined) continue;
      const fromMs = was[was.findLastIndex((one) => one.host !== host) + 1]?.fromMs ?? sinceMs;
      if (fromMs < sinceMs) say('stale', `${id} is missing; it is on ${host} since ${when(fromMs)}`);
    }
  }

  /** Whether a server was as it is shown, at a time since its list was compared. */
  #isTrue(
    one: Snapshot['servers'][number],
    checked: ReadonlyMap<string, number>,
    cycleMs: number,
    storedMs: number,
  ): boolean {
    const { id, host, alsoOn, vmState, taskState, locked, flavor, optedOutBy } = one;
    const state = [vmState, taskState, locked, flavor, optedOutBy === null ? '' : 'excluded'].join(' ');
    const isAt = (where: (host: string) => boolean, fromMs: number): boolean =>
      this.#during(id, fromMs, storedMs).some((was) => was.host !== null && where(was.host) && was.state === state);
    // One that has left the aggregate is shown on the host here that still holds resources for it. The list of its own is elsewhere.
    return (
      isAt((name) => name === host, checked.get(host) ?? cycleMs) ||
      isAt((name) => !checked.has(name) && alsoOn.includes(name), cycleMs - this.#syncMs)
    );
  }

  /** Its nova-compute was heard since the last loss of trust, and its whole list was read after that. */
  #trusted({ scorer, cycleMs, storedMs, say }: Judged, host: string, whole: (since: number) => boolean): void {
    let sinceMs = scorer.startedMs;
    for (const { fromMs, toMs } of scorer.outages) {
      const lostMs = fromMs + this.#syncMs;
      if (lostMs < Math.min(toMs ?? Number.POSITIVE_INFINITY, cycleMs) - TOLERANCE_MS)
        sinceMs = Math.max(sinceMs, lostMs);
    }
    const first = this.#heard.get(host)?.find((atMs) => atMs >= sinceMs && atMs <= storedMs);
    if (first === undefined)
      say('untrusted', `${host} was not heard since ${when(sinceMs)}, and its kept list was used`);
    else if (!whole(first))
      say('untrusted', `the list of ${host} was not read since it was first heard at ${when(first)}`);
  }

  /** The states of a server between two moments. */
  #during(id: string, fromMs: number, toMs: number): Was[] {
    const was = this.#servers.get(id) ?? [];
    return was.filter(
      ({ fromMs: its }, index) => its <= toMs && (was[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY) >= fromMs,
    );
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}

const when = (ms: number): string => (Number.isFinite(ms) ? new Date(ms).toISOString() : 'the start');
