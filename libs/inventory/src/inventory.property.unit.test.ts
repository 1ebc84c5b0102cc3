import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type InventoryServer, isNothing, type KeptMode, type ReadLimits, ServerInventory } from './inventory.ts';

/**
 * A small Nova: what can happen to a server, the notifications that tell of it, and the reads. Time is milliseconds; every act
 * and every read takes some.
 */
interface Vm extends InventoryServer {
  readonly revision: number;
}
interface Notice {
  readonly id: string;
  readonly deleted: boolean;
  /** The host whose nova-compute sent it; null: an API or a conductor. */
  readonly compute: string | null;
}

const OUT = 'kronos:exclude';
const HOSTS = ['a', 'b', 'c'] as const;
const SYNC_MS = 300_000;
const CYCLE_MS = 60_000;
/** The clocks of Nova's conductors differ by up to this much, and `updated` is cut to the second. */
const SKEW_MS = 2_000;
const OVERLAP_MS = 30_000;

const acts = [
  'create',
  'build',
  'delete',
  'softDelete',
  'restore',
  'resize',
  'move',
  'coldMove',
  'shelve',
  'unshelve',
  'rebuild',
  'lock',
  'tag',
  'setMetadata',
  'removeMetadata',
  'state',
] as const;
type Act = (typeof acts)[number];

class Nova {
  nowMs = Date.UTC(2026, 0, 1);
  readonly vms = new Map<string, Vm>();
  readonly queue: Notice[] = [];
  /** Hosts whose nova-compute sends only unversioned notifications. */
  readonly silent: ReadonlySet<string>;
  #made = 0;
  #skew = 0;

  constructor(silent: ReadonlySet<string>) {
    this.silent = silent;
  }

  /** @param pick chooses the server and the host; @param skewMs of the conductor that writes */
  act(act: Act, pick: number, skewMs: number): void {
    this.nowMs += 7;
    this.#skew = skewMs;
    const host = HOSTS[pick % HOSTS.length] ?? 'a';
    if (act === 'create' || act === 'build') {
      const id = `vm-${this.#made++}`;
      const made = { id, status: act === 'build' ? 'BUILD' : 'ACTIVE', tags: [], metadata: {}, revision: 0 };
      this.#set(
        { ...made, host: act === 'build' ? null : host, cellDown: false, updatedAt: null },
        act === 'build' ? null : host,
      );
      return;
    }
    const alive = [...this.vms.values()].filter((one) => one.status !== 'DELETED');
    const vm = alive[pick % Math.max(1, alive.length)];
    if (vm === undefined) return;
    const soft = vm.status === 'SOFT_DELETED';
    if (act === 'delete') this.#set({ ...vm, status: 'DELETED' }, vm.host);
    else if (act === 'restore') soft && this.#set({ ...vm, status: 'ACTIVE' }, vm.host);
    else if (soft) return;
    else if (act === 'softDelete') vm.host !== null && this.#set({ ...vm, status: 'SOFT_DELETED' }, vm.host);
    else if (act === 'tag') {
      // Nova keeps tags beside the server: `updated` stays.
      const tags = vm.tags.length === 0 ? [OUT] : [];
      this.vms.set(vm.id, { ...vm, tags });
      this.#notify({ id: vm.id, deleted: false, compute: null });
    } else if (act === 'removeMetadata') {
      // Nor does Nova count a metadata key that is removed.
      this.vms.set(vm.id, { ...vm, metadata: {} });
      this.#notify({ id: vm.id, deleted: false, compute: null });
    } else if (act === 'setMetadata') this.#set({ ...vm, metadata: { [OUT]: 'true' } }, null);
    else if (act === 'shelve') this.#set({ ...vm, status: 'SHELVED_OFFLOADED', host: null }, vm.host);
    else if (vm.host === null) this.#set({ ...vm, status: 'ACTIVE', host }, host);
    else if (act === 'move') {
      this.#set({ ...vm, status: 'MIGRATING' }, vm.host);
      this.#set({ ...vm, status: 'ACTIVE', host }, host);
    } else if (act === 'coldMove') this.#set({ ...vm, status: 'VERIFY_RESIZE', host }, vm.host);
    else if (act === 'lock') this.#set(vm, null);
    else this.#set({ ...vm, status: act === 'rebuild' ? 'REBUILD' : 'ACTIVE' }, vm.host);
  }

  #set(vm: Vm, compute: string | null): void {
    const seconds = Math.floor((this.nowMs + this.#skew) / 1000) * 1000;
    const revision = (this.vms.get(vm.id)?.revision ?? 0) + 1;
    this.vms.set(vm.id, { ...vm, revision, updatedAt: new Date(seconds).toISOString() });
    this.#notify({ id: vm.id, deleted: vm.status === 'DELETED', compute });
  }

  #notify(notice: Notice): void {
    if (notice.compute === null || !this.silent.has(notice.compute)) this.queue.push(notice);
  }

  list(host?: string): Vm[] {
    const hidden = new Set(['DELETED', 'SOFT_DELETED']);
    return [...this.vms.values()].filter((one) => !hidden.has(one.status) && (host === undefined || one.host === host));
  }
  /** The deleted ones too, of either kind (nova/api/openstack/compute/servers.py: no filter `deleted` with `changes-since`). */
  changed(sinceMs: number): Vm[] {
    return [...this.vms.values()].filter((one) => Date.parse(one.updatedAt ?? '') >= sinceMs - (sinceMs % 1000));
  }
  idsByHost(): Map<string, Set<string>> {
    const alive = [...this.vms.values()].filter((one) => one.status !== 'DELETED');
    return new Map(HOSTS.map((host) => [host, new Set(alive.filter((one) => one.host === host).map((one) => one.id))]));
  }
  get(id: string): Vm | null {
    const vm = this.vms.get(id);
    return vm === undefined || vm.status === 'DELETED' ? null : vm;
  }
}

/** The reads of one cycle; `between` happens between two of them. Returns the hosts whose whole list was read. */
function cycle(
  nova: Nova,
  inventory: ServerInventory<Vm>,
  mode: KeptMode,
  cycleMs: number,
  between: () => void,
): Set<string> {
  const whole = new Set<string>();
  for (let round = 0; round < 40; round++) {
    const wanted = inventory.wanted({ mode, cycleMs, syncIntervalMs: SYNC_MS, hosts: HOSTS });
    if (isNothing(wanted)) return whole;
    const timed = <T>(read: () => T): [T, { beganMs: number; endedMs: number }] => {
      nova.nowMs += 3;
      const beganMs = nova.nowMs;
      const value = read();
      nova.nowMs += 5;
      return [value, { beganMs, endedMs: nova.nowMs }];
    };
    if (wanted.bulk !== null) {
      inventory.bulkRead(...timed(() => nova.list()));
      for (const host of HOSTS) whole.add(host);
      between();
    }
    if (wanted.comparison) {
      inventory.compared(...timed(() => nova.idsByHost()));
      between();
    }
    if (wanted.tagged) {
      const tagged = (): Set<string> => new Set(nova.list().flatMap((one) => (one.tags.includes(OUT) ? [one.id] : [])));
      inventory.taggedRead(...timed(tagged));
      between();
    }
    const since = wanted.changesSinceMs;
    if (since !== null) {
      inventory.changesRead(since, ...timed(() => nova.changed(since - OVERLAP_MS)));
      between();
    }
    for (const host of wanted.hosts.keys()) {
      inventory.hostRead(host, ...timed(() => nova.list(host)));
      whole.add(host);
      between();
    }
    for (const id of wanted.servers.keys()) {
      inventory.serverRead(id, ...timed(() => nova.get(id)));
      between();
    }
  }
  throw new Error('the inventory never has enough');
}

const byId = (vms: readonly Vm[]): Vm[] => [...vms].sort((a, b) => (a.id < b.id ? -1 : 1));

type Step =
  | { readonly do: 'act'; readonly act: Act; readonly pick: number; readonly skewMs: number }
  | { readonly do: 'deliver' | 'lose' | 'twice'; readonly which: number }
  | { readonly do: 'cycle'; readonly acts: readonly { readonly act: Act; readonly pick: number }[] }
  | { readonly do: 'cut' };

const pick = fc.nat(30);
const aStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('act' as const),
      act: fc.constantFrom(...acts),
      pick,
      skewMs: fc.integer({ min: -SKEW_MS, max: SKEW_MS }),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('deliver', 'deliver', 'lose', 'twice'), which: pick }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('cycle' as const),
      acts: fc.array(fc.record({ act: fc.constantFrom(...acts), pick }), { maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'cut' as const }) },
);

/** Lives through a history; `used` sees every list that could be used. */
function live(
  mode: KeptMode,
  silent: ReadonlySet<string>,
  limits: ReadLimits,
  steps: readonly Step[],
  used: (nova: Nova, inventory: ServerInventory<Vm>, read: ReadonlySet<string>, quiet: boolean) => void,
): { readonly nova: Nova; readonly inventory: ServerInventory<Vm> } {
  const nova = new Nova(silent);
  for (let i = 0; i < 12; i++) nova.act('create', i, 0);
  const inventory = new ServerInventory<Vm>([OUT], limits);
  const deliver = ({ id, deleted, compute }: Notice): void => {
    nova.nowMs += 1;
    inventory.notified({ id, deleted, receivedMs: nova.nowMs });
    if (compute !== null) inventory.heard(compute, nova.nowMs);
  };
  for (const step of steps) {
    if (step.do === 'act') nova.act(step.act, step.pick, step.skewMs);
    else if (step.do === 'cut') inventory.distrust(nova.nowMs);
    else if (step.do === 'cycle') {
      nova.nowMs += CYCLE_MS;
      const acts = [...step.acts];
      const read = cycle(nova, inventory, mode, nova.nowMs, () => {
        const next = acts.shift();
        if (next !== undefined) nova.act(next.act, next.pick, 0);
      });
      used(nova, inventory, read, step.acts.length === 0);
    } else if (nova.queue.length > 0) {
      // Any of those that wait, so they come late and in any order.
      const at = step.which % nova.queue.length;
      const [notice] = step.do === 'twice' ? [nova.queue[at]] : nova.queue.splice(at, 1);
      if (notice !== undefined && step.do !== 'lose') deliver(notice);
    }
  }
  return { nova, inventory };
}

const histories = fc.record({
  mode: fc.constantFrom<KeptMode>('changes', 'notifications'),
  silent: fc.subarray([...HOSTS]).map((hosts) => new Set<string>(hosts)),
  limits: fc.record({ servers: fc.nat(6), hosts: fc.nat(3) }),
  steps: fc.array(aStep, { minLength: 20, maxLength: 120 }),
});

it("the inventory is Nova's own list after the next comparison, whatever was lost, late, doubled or out of order", () => {
  fc.assert(
    fc.property(histories, ({ mode, silent, limits, steps }) => {
      const { nova, inventory } = live(mode, silent, limits, steps, () => undefined);
      nova.nowMs += SYNC_MS;
      cycle(nova, inventory, mode, nova.nowMs, () => undefined);
      expect(byId(inventory.list())).toEqual(byId(nova.list()));
    }),
    { numRuns: 400 },
  );
});

it('the list of an untrusted host is never used without a read of it in the same cycle', () => {
  fc.assert(
    fc.property(histories, ({ silent, limits, steps }) => {
      live('notifications', silent, limits, steps, (nova, inventory, read, quiet) => {
        for (const host of HOSTS) {
          if (silent.has(host)) expect(inventory.trusted(host)).toBe(false);
          if (inventory.trusted(host)) continue;
          expect(read).toContain(host);
          if (!quiet) continue;
          const here = inventory.list().filter((one) => one.host === host);
          expect(byId(here)).toEqual(byId(nova.list(host)));
        }
      });
    }),
    { numRuns: 400 },
  );
});

it('while nothing is lost the list is right in every cycle, with the comparison far away', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ act: fc.constantFrom(...acts), pick }), { maxLength: 60 }), (history) => {
      const limits = { servers: 4, hosts: 2 };
      const first: Step = { do: 'cycle', acts: [] };
      const { nova, inventory } = live('notifications', new Set(), limits, [first], () => undefined);
      for (const host of HOSTS) inventory.heard(host, nova.nowMs);
      cycle(nova, inventory, 'notifications', nova.nowMs, () => undefined);
      nova.queue.length = 0;
      const beginMs = nova.nowMs;
      for (const { act, pick } of history) {
        nova.act(act, pick, 0);
        for (const { id, deleted } of nova.queue.splice(0)) inventory.notified({ id, deleted, receivedMs: nova.nowMs });
        nova.nowMs += 10;
        const read = cycle(nova, inventory, 'notifications', nova.nowMs, () => undefined);
        expect([...read]).toEqual([]);
        expect(byId(inventory.list())).toEqual(byId(nova.list()));
      }
      expect(nova.nowMs - beginMs).toBeLessThan(SYNC_MS);
    }),
    { numRuns: 200 },
  );
});
