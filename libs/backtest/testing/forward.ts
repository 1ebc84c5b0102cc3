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
  const now: Now = { host: 0, flavor: 0, status: 'ACTIVE' };
  const truths: { fromMs: number; truth: Truth }[] = [];
  const migrations: Migration[] = [];
  const actions: InstanceAction[] = [];
  let atMs = bornMs;
  const note = (moving = false): void => {
    const flavorNow = FLAVORS[now.flavor];
    if (flavorNow === undefined) throw new RangeError(`no flavor ${now.flavor}`);
    truths.push({ fromMs: atMs, truth: { host: host(now.host), status: now.status, flavor: flavorNow, moving } });
  };
  const action = (name: string, hosts: readonly (readonly [string, string])[], failed: boolean): void => {
    actions.unshift({
      action: name,
      serverId: id,
      requestId: `req-${id}-${actions.length}`,
      startedAt: iso(atMs),
      updatedAt: iso(atMs),
      message: failed ? 'Error' : null,
      events: hosts.map(([event, at]) => ({
        event,
        host: at,
        startedAt: iso(atMs),
        finishedAt: iso(atMs + TAKES_MS),
        result: 'Success',
        traceback: null,
        details: null,
      })),
    });
  };
  note();
  action('create', [], false);
  for (const one of deeds) {
    atMs += DEED_MS;
    if (one.deed === 'wait') continue;
    if (one.deed !== 'move' && one.deed !== 'resize') {
      const [before, after] = STATUS[one.deed];
      if (now.status !== before) continue;
      action(one.deed, [], false);
      now.status = after;
      note();
      continue;
    }
    if (one.to === now.host || (now.status !== 'ACTIVE' && one.deed === 'move')) continue;
    const resize = one.deed === 'resize';
    const arrives = resize || one.end === 'completed' || one.end === 'errorAfterSwitch';
    const from = host(now.host);
    const to = host(one.to);
    const events = resize
      ? ([
          ['compute_resize_instance', from],
          ['compute_finish_resize', to],
        ] as const)
      : ([
          ['compute_check_can_live_migrate_source', from],
          ...(arrives ? ([['compute_post_live_migration_at_destination', to]] as const) : []),
        ] as const);
    action(resize ? 'resize' : 'live-migration', events, !arrives);
    const row = {
      id: migrations.length + 1,
      uuid: `${id}-${migrations.length}`,
      serverId: id,
    };
    migrations.push({
      ...row,
      type: resize ? 'resize' : 'live-migration',
      status: resize ? 'confirmed' : one.end === 'errorAfterSwitch' ? 'error' : one.end,
      sourceCompute: from,
      destCompute: to,
      oldTypeId: now.flavor,
      newTypeId: resize ? one.flavor : now.flavor,
      createdAt: iso(atMs),
      updatedAt: iso(atMs + TAKES_MS),
    });
    note(true);
    atMs += TAKES_MS;
    if (arrives) now.host = one.to;
    if (resize) now.flavor = one.flavor;
    note();
  }
  atMs += DEED_MS;
  if (deleted) {
    action('delete', [], false);
    truths.push({ fromMs: atMs, truth: null });
  }
  return {
    server: serverOf(id, now, { bornMs, deleted, updatedMs: atMs }),
    migrations: deleted ? [] : migrations,
    actions,
    readMs: atMs + DEED_MS,
    at: (ms) => (ms < bornMs ? null : (truths.findLast(({ fromMs }) => fromMs <= ms)?.truth ?? null)),
    moments: truths.map(({ fromMs }) => fromMs),
  };
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
