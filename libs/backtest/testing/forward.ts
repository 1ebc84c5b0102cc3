/** The life of a server, forwards: what happens to it, what is true at each time, and what Nova keeps of it. */
import type { Flavor, InstanceAction, Migration, Server } from '@kronos/openstack';
import { server } from '@kronos/openstack/testing';

const flavor = (name: string, ramMb: number): Flavor => ({
  name,
  vcpus: 2,
  ramMb,
  rootGb: 10,
  ephemeralGb: 0,
  swapMb: 0,
  extraSpecs: {},
});
/** Flavors by their numbers in Nova's database. */
export const FLAVORS: readonly Flavor[] = [flavor('small', 2048), flavor('medium', 4096), flavor('large', 8192)];

/** Something that happens to a server. Hosts and flavors are numbers. */
export type Deed =
  | { readonly deed: 'move'; readonly to: number; readonly end: 'completed' | 'failed' | 'error' | 'errorAfterSwitch' }
  | { readonly deed: 'resize'; readonly to: number; readonly flavor: number }
  | { readonly deed: 'stop' | 'start' | 'pause' | 'unpause' }
  | { readonly deed: 'wait' };

/** The truth at a time; null: the server does not exist. */
type Truth = {
  readonly host: string;
  readonly status: string;
  readonly flavor: Flavor;
  readonly moving: boolean;
} | null;

export type Lived = {
  readonly server: Server;
  /** Rows that Nova would keep: none of a deleted server. */
  readonly migrations: readonly Migration[];
  readonly actions: readonly InstanceAction[];
  readonly readMs: number;
  readonly at: (atMs: number) => Truth;
  /** The moments at which something began or ended. */
  readonly moments: readonly number[];
};

export const DEED_MS = 60_000;
const TAKES_MS = 20_000;
const host = (n: number): string => `host-${n}`;
const iso = (ms: number): string => new Date(ms).toISOString();

type Now = { host: number; flavor: number; status: string };
const STATUS = {
  stop: ['ACTIVE', 'SHUTOFF'],
  start: ['SHUTOFF', 'ACTIVE'],
  pause: ['ACTIVE', 'PAUSED'],
  unpause: ['PAUSED', 'ACTIVE'],
} as const;

/** Lives a life. Deeds that are not possible then do not happen. */
export function live(id: string, bornMs: number, deeds: readonly Deed[], deleted: boolean): Lived {
  const life = new Life(id, bornMs);
  for (const deed of deeds) life.deed(deed);
  return life.end(deleted);
}

class Life {
  readonly #id: string;
  readonly #bornMs: number;
  readonly #now: Now = { host: 0, flavor: 0, status: 'ACTIVE' };
  readonly #truths: { fromMs: number; truth: Truth }[] = [];
  readonly #migrations: Migration[] = [];
  readonly #actions: InstanceAction[] = [];
  #atMs: number;

  constructor(id: string, bornMs: number) {
    this.#id = id;
    this.#bornMs = bornMs;
    this.#atMs = bornMs;
    this.#note();
    this.#action('create', [], false);
  }

  #note(moving = false): void {
    const { host: at, flavor, status } = this.#now;
    const flavorNow = FLAVORS[flavor];
    if (flavorNow === undefined) throw new RangeError(`no flavor ${flavor}`);
    this.#truths.push({ fromMs: this.#atMs, truth: { host: host(at), status, flavor: flavorNow, moving } });
  }

  #action(name: string, hosts: readonly (readonly [string, string])[], failed: boolean): void {
    const startedAt = iso(this.#atMs);
    this.#actions.unshift({
      action: name,
      serverId: this.#id,
      requestId: `req-${this.#id}-${this.#actions.length}`,
      startedAt,
      updatedAt: startedAt,
      message: failed ? 'Error' : null,
      events: hosts.map(([event, at]) => ({
        event,
        host: at,
        startedAt,
        finishedAt: iso(this.#atMs + TAKES_MS),
        result: 'Success',
        traceback: null,
        details: null,
      })),
    });
  }

  deed(one: Deed): void {
    this.#atMs += DEED_MS;
    if (one.deed === 'wait') return;
    if (one.deed === 'move' || one.deed === 'resize') this.#goes(one);
    else this.#becomes(one.deed);
  }

  #becomes(deed: keyof typeof STATUS): void {
    const [before, after] = STATUS[deed];
    if (this.#now.status !== before) return;
    this.#action(deed, [], false);
    this.#now.status = after;
    this.#note();
  }

  #goes(one: Extract<Deed, { readonly to: number }>): void {
    const now = this.#now;
    if (one.to === now.host || (now.status !== 'ACTIVE' && one.deed === 'move')) return;
    const resize = one.deed === 'resize';
    const arrives = resize || one.end === 'completed' || one.end === 'errorAfterSwitch';
    this.#action(resize ? 'resize' : 'live-migration', eventsOf(one, host(now.host), arrives), !arrives);
    this.#migrations.push({
      id: this.#migrations.length + 1,
      uuid: `${this.#id}-${this.#migrations.length}`,
      serverId: this.#id,
      type: resize ? 'resize' : 'live-migration',
      status: resize ? 'confirmed' : one.end === 'errorAfterSwitch' ? 'error' : one.end,
      sourceCompute: host(now.host),
      destCompute: host(one.to),
      oldTypeId: now.flavor,
      newTypeId: resize ? one.flavor : now.flavor,
      createdAt: iso(this.#atMs),
      updatedAt: iso(this.#atMs + TAKES_MS),
    });
    this.#note(true);
    this.#atMs += TAKES_MS;
    if (arrives) now.host = one.to;
    if (resize) now.flavor = one.flavor;
    this.#note();
  }

  end(deleted: boolean): Lived {
    this.#atMs += DEED_MS;
    if (deleted) {
      this.#action('delete', [], false);
      this.#truths.push({ fromMs: this.#atMs, truth: null });
    }
    const [bornMs, truths] = [this.#bornMs, this.#truths];
    return {
      server: serverOf(this.#id, this.#now, { bornMs, deleted, updatedMs: this.#atMs }),
      migrations: deleted ? [] : this.#migrations,
      actions: this.#actions,
      readMs: this.#atMs + DEED_MS,
      at: (ms) => (ms < bornMs ? null : (truths.findLast(({ fromMs }) => fromMs <= ms)?.truth ?? null)),
      moments: truths.map(({ fromMs }) => fromMs),
    };
  }
}

/** The events of a move or a resize, with their hosts. */
function eventsOf(
  { deed, to }: Extract<Deed, { readonly to: number }>,
  from: string,
  arrives: boolean,
): [string, string][] {
  if (deed === 'resize')
    return [
      ['compute_resize_instance', from],
      ['compute_finish_resize', host(to)],
    ];
  const begun: [string, string] = ['compute_check_can_live_migrate_source', from];
  return arrives ? [begun, ['compute_post_live_migration_at_destination', host(to)]] : [begun];
}

function serverOf(
  id: string,
  now: Now,
  { bornMs, deleted, updatedMs }: { readonly bornMs: number; readonly deleted: boolean; readonly updatedMs: number },
): Server {
  const at = host(now.host);
  return {
    ...server(id, at, { status: deleted ? 'DELETED' : now.status, vmState: deleted ? 'deleted' : 'active' }),
    internalName: null,
    hypervisorHostname: at,
    flavor: FLAVORS[now.flavor] ?? null,
    availabilityZone: null,
    createdAt: iso(bornMs),
    updatedAt: iso(updatedMs),
  };
}
