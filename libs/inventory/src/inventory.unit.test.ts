import { describe, expect, it } from 'vitest';
import { type AskedRead, type InventoryServer, isNothing, type KeptMode, ServerInventory } from './inventory.ts';

const OUT = 'kronos:exclude';
const at = (beganMs: number, endedMs = beganMs): { beganMs: number; endedMs: number } => ({ beganMs, endedMs });
const vm = (id: string, host: string | null, change: Partial<InventoryServer> = {}): InventoryServer => ({
  id,
  host,
  status: 'ACTIVE',
  cellDown: false,
  updatedAt: '2026-01-01T00:00:00Z',
  tags: [],
  metadata: {},
  ...change,
});
const asked = (mode: KeptMode, cycleMs: number): AskedRead => ({
  mode,
  cycleMs,
  syncIntervalMs: 300,
  hosts: ['a', 'b'],
});
type Inventory = ServerInventory<InventoryServer>;
const wantedOf = (inventory: Inventory, mode: KeptMode, cycleMs: number) => inventory.wanted(asked(mode, cycleMs));
const wants = (inventory: Inventory, mode: KeptMode, cycleMs: number): boolean =>
  !isNothing(wantedOf(inventory, mode, cycleMs));
/** Nothing has changed since the bulk read, and no server has a tag. */
function readOn(inventory: Inventory, changesMs: number, tagsMs = changesMs): void {
  inventory.changesRead(10, [], at(changesMs));
  inventory.taggedRead(new Set(), at(tagsMs));
}
const notified = (inventory: Inventory, id: string, receivedMs: number, deleted = false): void =>
  inventory.notified({ id, deleted, receivedMs });
const ids = (hosts: Record<string, string[]>): Map<string, Set<string>> =>
  new Map(Object.entries(hosts).map(([host, list]) => [host, new Set(list)]));
const hostOf = (inventory: Inventory, id: string): string | null | undefined =>
  inventory.list().find((one) => one.id === id)?.host;

/** One with a bulk read at 10, in which a has one and two, and b has three. */
function given(limits?: { servers: number; hosts: number }): Inventory {
  const inventory = new ServerInventory<InventoryServer>([OUT], limits);
  inventory.bulkRead([vm('one', 'a'), vm('two', 'a'), vm('three', 'b')], at(10, 20));
  return inventory;
}
/** The same with both hosts heard, and read since. */
function trusting(limits?: { servers: number; hosts: number }): Inventory {
  const inventory = given(limits);
  inventory.heard('a', 5);
  inventory.heard('b', 5);
  return inventory;
}

describe('what is read', () => {
  it('begins with one bulk read', () => {
    const inventory = new ServerInventory<InventoryServer>([OUT]);
    expect(wantedOf(inventory, 'notifications', 0).bulk).toBe('start');
    expect(wantedOf(inventory, 'changes', 0).bulk).toBe('start');
    expect(wantedOf(given(), 'changes', 100).bulk).toBeNull();
  });

  it('is everything again after an hour without a read', () => {
    const inventory = given();
    expect(inventory.wanted(asked('changes', 3_600_010)).bulk).toBeNull();
    expect(inventory.wanted(asked('changes', 3_600_011)).bulk).toBe('start');
  });

  it('is what changed since the read before, and the tags, in each cycle of the mode changes', () => {
    const inventory = given();
    const wanted = wantedOf(inventory, 'changes', 100);
    expect(wanted).toMatchObject({ changesSinceMs: 10, tagged: true, comparison: false });
    readOn(inventory, 101, 102);
    expect(wants(inventory, 'changes', 100)).toBe(false);
    expect(wantedOf(inventory, 'changes', 200).changesSinceMs).toBe(101);
  });

  it('is nothing while hosts are trusted and nobody said that anything changed', () => {
    expect(wants(trusting(), 'notifications', 100)).toBe(false);
  });

  it('is a comparison with the changes and tags once sync_interval is over', () => {
    expect(wantedOf(trusting(), 'notifications', 310)).toMatchObject({
      comparison: true,
      changesSinceMs: 10,
      tagged: true,
    });
    expect(wantedOf(trusting(), 'notifications', 309).comparison).toBe(false);
  });

  it('asks for no tags where none opts out', () => {
    const inventory = new ServerInventory<InventoryServer>([]);
    inventory.bulkRead([], at(10));
    expect(wantedOf(inventory, 'changes', 100).tagged).toBe(false);
  });

  it('is one list of changes, then everything, where there would be too many single reads', () => {
    const inventory = trusting({ servers: 1, hosts: 1 });
    notified(inventory, 'one', 50);
    expect([...wantedOf(inventory, 'notifications', 100).servers]).toEqual([['one', null]]);
    notified(inventory, 'two', 50);
    expect(wantedOf(inventory, 'notifications', 100).changesSinceMs).toBe(10);
    inventory.changesRead(10, [], at(110));
    expect(wantedOf(inventory, 'notifications', 100).bulk).toBe('many');
    inventory.bulkRead([vm('one', 'a'), vm('two', 'a')], at(120, 130));
    expect(wants(inventory, 'notifications', 100)).toBe(false);
  });

  it('is for the next cycle what is notified while this one reads', () => {
    const inventory = trusting({ servers: 1, hosts: 1 });
    notified(inventory, 'one', 101);
    expect(wants(inventory, 'notifications', 100)).toBe(false);
    expect([...wantedOf(inventory, 'notifications', 101).servers]).toEqual([['one', null]]);
  });

  it('is a comparison at once after a doubt, and none after the next', () => {
    const inventory = trusting();
    inventory.doubt(90);
    expect(wantedOf(inventory, 'notifications', 100)).toMatchObject({ comparison: true, changesSinceMs: 10 });
    inventory.compared(ids({ a: ['one', 'two'], b: ['three'] }), at(101));
    readOn(inventory, 102, 103);
    expect(wants(inventory, 'notifications', 100)).toBe(false);
  });
});

describe('trust', () => {
  it('of one host ends without that of the others, until it is heard and read again', () => {
    const inventory = trusting();
    inventory.distrustHost('a');
    expect([...wantedOf(inventory, 'notifications', 100).hosts]).toEqual([['a', 'untrusted']]);
    inventory.hostRead('a', [vm('one', 'a'), vm('two', 'a')], at(101));
    expect(inventory.trusted('a')).toBe(false);
    inventory.heard('a', 110);
    inventory.hostRead('a', [vm('one', 'a'), vm('two', 'a')], at(201));
    expect([inventory.trusted('a'), inventory.trusted('b')]).toEqual([true, true]);
  });

  it('begins with a message of the host, and a read of its whole list after it', () => {
    const inventory = given();
    inventory.heard('a', 30);
    expect(inventory.trusted('a')).toBe(false);
    expect([...wantedOf(inventory, 'notifications', 40).hosts.keys()]).toEqual(['a', 'b']);
    inventory.hostRead('a', [vm('one', 'a'), vm('two', 'a')], at(40));
    expect(inventory.trusted('a')).toBe(true);
    expect(inventory.trusted('b')).toBe(false);
    expect([...wantedOf(inventory, 'notifications', 100).hosts]).toEqual([['b', 'untrusted']]);
  });

  it('ends when messages may have been lost, for every host heard before', () => {
    const inventory = trusting();
    inventory.distrust(4);
    expect(inventory.trusted('a')).toBe(true);
    inventory.distrust(5);
    expect(inventory.trusted('a')).toBe(false);
  });

  it('is not asked for in the mode changes', () => {
    const inventory = given();
    readOn(inventory, 101);
    expect(wants(inventory, 'changes', 100)).toBe(false);
  });
});

describe('a notification', () => {
  it('has the server read again, until a read that began after its receipt', () => {
    const inventory = trusting();
    notified(inventory, 'one', 50);
    inventory.serverRead('one', vm('one', 'b'), at(49, 60));
    expect(wantedOf(inventory, 'notifications', 100).servers.has('one')).toBe(true);
    inventory.serverRead('one', vm('one', 'b'), at(60, 61));
    expect(wants(inventory, 'notifications', 100)).toBe(false);
    expect(hostOf(inventory, 'one')).toBe('b');
  });

  it('that a server is deleted is final, whatever an earlier read or a late notification says', () => {
    const inventory = trusting();
    notified(inventory, 'one', 50, true);
    expect(hostOf(inventory, 'one')).toBeUndefined();
    notified(inventory, 'one', 60);
    inventory.changesRead(10, [vm('one', 'a')], at(45, 70));
    expect(hostOf(inventory, 'one')).toBeUndefined();
    expect(wants(inventory, 'notifications', 100)).toBe(false);
  });

  it('of a server that is gone by the time of the read leaves nothing', () => {
    const inventory = trusting();
    notified(inventory, 'new', 50);
    inventory.serverRead('new', null, at(60));
    expect(wants(inventory, 'notifications', 100)).toBe(false);
  });
});

describe('a server of a cell that is down', () => {
  const lost = (id: string): InventoryServer => vm(id, null, { status: 'UNKNOWN', cellDown: true, updatedAt: null });

  it.each(['changes', 'notifications'] as const)(
    'is read again in each cycle of the mode %s, until Nova says where it is',
    (mode) => {
      const inventory = trusting();
      inventory.bulkRead([lost('one'), vm('two', 'a'), vm('three', 'b')], at(30, 40));
      for (const cycleMs of [100, 200]) {
        readOn(inventory, cycleMs);
        expect([...wantedOf(inventory, mode, cycleMs).servers]).toEqual([['one', null]]);
        inventory.serverRead('one', cycleMs === 200 ? vm('one', 'a') : lost('one'), at(cycleMs));
        expect(wants(inventory, mode, cycleMs)).toBe(false);
      }
      expect(hostOf(inventory, 'one')).toBe('a');
      readOn(inventory, 300);
      expect(wants(inventory, mode, 300)).toBe(false);
    },
  );

  it('is read with all others where there are many', () => {
    const inventory = trusting({ servers: 1, hosts: 1 });
    inventory.bulkRead([lost('one'), lost('two'), vm('three', 'b')], at(30, 40));
    inventory.changesRead(30, [], at(100));
    expect(wantedOf(inventory, 'notifications', 100).bulk).toBe('many');
    inventory.bulkRead([vm('one', 'a'), vm('two', 'a'), vm('three', 'b')], at(101, 110));
    expect(wants(inventory, 'notifications', 100)).toBe(false);
    expect(inventory.list().map(({ host }) => host)).toEqual(['a', 'a', 'b']);
  });
});

describe('reads in any order', () => {
  it('keep the later of two that did not overlap, also where clocks in Nova went back', () => {
    const inventory = given();
    inventory.changesRead(10, [vm('one', 'b', { updatedAt: '2025-12-31T23:59:59Z' })], at(30, 31));
    expect(hostOf(inventory, 'one')).toBe('b');
    inventory.serverRead('one', vm('one', 'a', { updatedAt: '2026-01-01T00:00:09Z' }), at(25, 26));
    expect(hostOf(inventory, 'one')).toBe('b');
  });

  it('keep the one with the later change of two that overlapped', () => {
    const inventory = given();
    inventory.changesRead(10, [vm('one', 'b', { updatedAt: '2026-01-01T00:00:01Z' })], at(12, 15));
    expect(hostOf(inventory, 'one')).toBe('b');
    inventory.serverRead('one', vm('one', 'a'), at(13, 14));
    expect(hostOf(inventory, 'one')).toBe('b');
  });

  it('do not bring back what a later bulk read lacks', () => {
    const inventory = given();
    inventory.changesRead(5, [vm('old', 'a')], at(8, 9));
    expect(hostOf(inventory, 'old')).toBeUndefined();
    expect(inventory.list()).toHaveLength(3);
  });

  it('keep no gap in what is known to have changed', () => {
    const inventory = given();
    inventory.changesRead(50, [], at(101));
    expect(wantedOf(inventory, 'changes', 100).changesSinceMs).toBe(10);
  });
});

describe('a comparison', () => {
  it('has the hosts read that differ, and the servers that left them', () => {
    const inventory = trusting();
    readOn(inventory, 311);
    inventory.compared(ids({ a: ['one'], b: ['three', 'two'] }), at(310));
    const { hosts } = wantedOf(inventory, 'notifications', 310);
    expect([...hosts]).toEqual([
      ['b', 'compared'],
      ['a', 'compared'],
    ]);
    inventory.hostRead('a', [vm('one', 'a')], at(320));
    expect(wantedOf(inventory, 'notifications', 310).hosts.has('a')).toBe(false);
    inventory.hostRead('b', [vm('three', 'b'), vm('two', 'b')], at(330));
    expect(wants(inventory, 'notifications', 310)).toBe(false);
  });

  it('finds nothing where the changes since explain it', () => {
    const inventory = trusting();
    inventory.compared(ids({ a: ['one'], b: ['three', 'two'] }), at(310));
    inventory.changesRead(10, [vm('two', 'b')], at(311));
    inventory.taggedRead(new Set(), at(311));
    expect(wants(inventory, 'notifications', 310)).toBe(false);
  });

  it('asks once for a server that is deleted softly: the list of ids has it, that of servers has not', () => {
    const inventory = trusting();
    readOn(inventory, 311);
    inventory.compared(ids({ a: ['one', 'two', 'soft'], b: ['three'] }), at(310));
    inventory.hostRead('a', [vm('one', 'a'), vm('two', 'a')], at(320));
    expect([...wantedOf(inventory, 'notifications', 310).servers]).toEqual([['soft', 'compared']]);
    inventory.serverRead('soft', vm('soft', 'a', { status: 'SOFT_DELETED' }), at(330));
    expect(wants(inventory, 'notifications', 310)).toBe(false);
    expect(hostOf(inventory, 'soft')).toBeUndefined();
  });

  it('reads again the servers whose tags opt them in or out since', () => {
    const inventory = given();
    inventory.changesRead(10, [], at(101));
    inventory.taggedRead(new Set(['one']), at(102));
    expect([...wantedOf(inventory, 'changes', 100).servers]).toEqual([['one', 'tagged']]);
    inventory.serverRead('one', vm('one', 'a', { tags: [OUT] }), at(110));
    expect(wants(inventory, 'changes', 100)).toBe(false);
  });
});

describe('a server that metadata opts out', () => {
  it('is read again at each comparison, as Nova does not say when the key is removed', () => {
    const inventory = given({ servers: 0, hosts: 1 });
    inventory.serverRead('one', vm('one', 'a', { metadata: { [OUT]: 'true' } }), at(30));
    inventory.compared(ids({ a: ['one', 'two'], b: ['three'] }), at(310));
    readOn(inventory, 311);
    expect([...wantedOf(inventory, 'changes', 310).servers]).toEqual([['one', null]]);
    inventory.serverRead('one', vm('one', 'a'), at(320));
    expect(wants(inventory, 'changes', 310)).toBe(false);
  });
});

describe('where the list of a host came from', () => {
  it('is the API for one that was read this cycle, else the mode, with the time of the last whole look', () => {
    const inventory = trusting();
    expect(inventory.sourceOf('a', asked('notifications', 10))).toEqual({ from: 'api', checkedMs: 10 });
    expect(inventory.sourceOf('a', asked('notifications', 100))).toEqual({ from: 'notifications', checkedMs: 10 });
    inventory.compared(ids({}), at(310));
    expect(inventory.sourceOf('a', asked('changes', 400))).toEqual({ from: 'changes', checkedMs: 310 });
  });
});
