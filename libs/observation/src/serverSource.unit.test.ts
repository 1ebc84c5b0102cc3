import { clockWatch } from '@kronos/clock';
import { NotFound, type Nova, type Server } from '@kronos/openstack';
import { server } from '@kronos/openstack/testing';
import { describe, expect, it } from 'vitest';
import { everyServer, type KeepServers, keepServers } from './serverSource.ts';

const OUT = 'kronos:exclude';
const signal = new AbortController().signal;
let reached = true;
const beside = { hosts: async () => ['a', 'b'], cellsReached: async () => reached };
const START_MS = Date.UTC(2026, 0, 1);

/** A Nova that answers from a list and writes down what it was asked. */
class FakeNova {
  nowMs = START_MS;
  readonly calls: string[] = [];
  readonly servers = new Map<string, Server>();
  failing: string | null = null;
  /** A host of a cell that is down: the lists lack its servers. */
  unreached: string | null = null;

  put(one: Server): void {
    this.servers.set(one.id, { ...one, updatedAt: new Date(this.nowMs).toISOString() });
  }
  #call(text: string): void {
    this.calls.push(text);
    this.nowMs += 10;
    if (text === this.failing) throw new Error('Nova is away');
  }
  async listServers({ host, changesSince }: Parameters<Nova['listServers']>[0] = {}): Promise<Server[]> {
    const what = host === undefined ? 'every server' : `servers of ${host}`;
    this.#call(changesSince === undefined ? what : `changes since ${changesSince}`);
    const all = [...this.servers.values()].filter((one) => one.host === null || one.host !== this.unreached);
    if (changesSince !== undefined)
      return all.filter((one) => Date.parse(one.updatedAt ?? '') >= Date.parse(changesSince));
    return all.filter((one) => one.status !== 'DELETED' && (host === undefined || one.host === host));
  }
  async listServerIds(): Promise<Set<string>> {
    this.#call('tags');
    return new Set([...this.servers.values()].filter((one) => one.tags.includes(OUT)).map((one) => one.id));
  }
  async listServerIdsByHost(): Promise<Map<string, Set<string>>> {
    this.#call('comparison');
    const hosts = new Map<string, Set<string>>();
    for (const { id, host, status } of this.servers.values())
      if (host !== null && status !== 'DELETED') hosts.set(host, (hosts.get(host) ?? new Set()).add(id));
    return hosts;
  }
  async getServer(id: string): Promise<Server> {
    this.#call(`server ${id}`);
    const found = this.servers.get(id);
    if (found === undefined || found.status === 'DELETED')
      throw new NotFound({ service: 'nova', method: 'GET', url: `/servers/${id}` }, 404, 'no such server');
    return found;
  }
}

function given(): {
  nova: FakeNova;
  /** The reader's clock from now on, ahead of Nova's. */
  setClock(aheadMs: number): void;
  resyncs: string[];
  source: ReturnType<typeof keepServers>;
  pass(ms: number): void;
} {
  const nova = new FakeNova();
  for (const [id, host] of [
    ['1', 'a'],
    ['2', 'a'],
    ['3', 'b'],
  ] as const)
    nova.put(server(id, host));
  const resyncs: string[] = [];
  let aheadMs = 0;
  const clock = { now: () => nova.nowMs + aheadMs, monotonic: () => nova.nowMs - START_MS };
  const maxClockSkewMs = 5_000;
  const watch = clockWatch({ read: () => ({ wall: clock.now(), mono: clock.monotonic() }) }, maxClockSkewMs);
  watch.see({ beforeMs: clock.now(), serverMs: nova.nowMs, afterMs: clock.now() });
  const deps: KeepServers = {
    nova,
    clock,
    mode: 'changes',
    optOut: [OUT],
    syncIntervalMs: 300_000,
    maxClockSkewMs,
    clockWrong: () => watch.problem() !== null,
    concurrency: 2,
    onResync: (reason, { host, server: id }) => resyncs.push(`${reason} ${host ?? id ?? 'all'}`),
  };
  return {
    nova,
    resyncs,
    setClock: (ms) => {
      aheadMs = ms;
    },
    source: keepServers(deps),
    pass: (ms) => {
      nova.nowMs += ms;
    },
  };
}
const places = (servers: readonly Server[]): string[] => servers.map((one) => `${one.id} ${one.host}`).sort();

describe('servers that are kept', () => {
  it('are read once, then only what changed, with an overlap, and the tags that opt out', async () => {
    const { nova, source, pass } = given();
    expect(places(await source.read(signal, beside))).toEqual(['1 a', '2 a', '3 b']);
    expect(source.listingOf('a')).toEqual({ from: 'api', checkedAt: '2026-01-01T00:00:00.000Z' });
    pass(60_000);
    nova.put(server('2', 'b'));
    nova.put({ ...server('3', 'b'), status: 'DELETED' });
    nova.calls.length = 0;
    expect(places(await source.read(signal, beside))).toEqual(['1 a', '2 b']);
    expect(nova.calls).toEqual(['tags', 'changes since 2025-12-31T23:59:30Z']);
    expect(source.listingOf('a')).toEqual({ from: 'changes', checkedAt: '2026-01-01T00:00:00.000Z' });
  });

  it('are compared every sync_interval; what differs is read again and told', async () => {
    const { nova, resyncs, source, pass } = given();
    await source.read(signal, beside);
    // A change that no list of changes shows, as if its row had been written behind the back of Nova.
    nova.servers.set('2', server('2', 'b', { updatedAt: '2025-12-01T00:00:00.000Z' }));
    pass(60_000);
    expect(places(await source.read(signal, beside))).toEqual(['1 a', '2 a', '3 b']);
    pass(300_000);
    expect(places(await source.read(signal, beside))).toEqual(['1 a', '2 b', '3 b']);
    expect(resyncs.sort()).toEqual(['compared a', 'compared b']);
    pass(60_000);
    await source.read(signal, beside);
    expect(resyncs).toHaveLength(2);
  });

  it.each([3_600_000, -3_600_000])(
    'are all read while the clock is %d ms wrong, and only what changed once it is right',
    async (aheadMs) => {
      const { nova, resyncs, setClock, source, pass } = given();
      await source.read(signal, beside);
      setClock(aheadMs);
      nova.put(server('2', 'a', { vmState: 'resized' }));
      pass(60_000);
      const states = async () =>
        (await source.read(signal, beside)).map(({ id, vmState }) => `${id} ${vmState}`).sort();
      expect(await states()).toEqual(['1 active', '2 resized', '3 active']);
      expect(resyncs).toEqual(['clock all']);
      nova.put(server('3', 'b', { vmState: 'resized' }));
      pass(60_000);
      setClock(0);
      nova.calls.length = 0;
      expect(await states()).toEqual(['1 active', '2 resized', '3 resized']);
      expect(nova.calls).toEqual(['tags', 'changes since 2026-01-01T00:00:30Z']);
    },
  );

  it('that were opted out by a tag are read again', async () => {
    const { nova, resyncs, source, pass } = given();
    await source.read(signal, beside);
    pass(60_000);
    nova.servers.set('1', { ...server('1', 'a'), updatedAt: '2025-12-01T00:00:00.000Z', tags: [OUT] });
    const tags = (await source.read(signal, beside)).find((one) => one.id === '1')?.tags;
    expect(tags).toEqual([OUT]);
    expect(resyncs).toEqual(['tagged 1']);
  });

  it.each(['tags', 'changes since 2025-12-31T23:59:30Z'])(
    'are not known where Nova does not answer: %s',
    async (call) => {
      const { nova, source, pass } = given();
      await source.read(signal, beside);
      pass(60_000);
      nova.failing = call;
      await expect(source.read(signal, beside)).rejects.toThrow('Nova is away');
      nova.failing = null;
      nova.put(server('2', 'b'));
      pass(60_000);
      expect(places(await source.read(signal, beside))).toEqual(['1 a', '2 b', '3 b']);
    },
  );
});

describe('servers of a cell that Nova did not reach for a while', () => {
  it('are read with all others once Nova reaches it again, as no list of changes has what changed meanwhile', async () => {
    const { nova, source, pass, resyncs } = given();
    const locked = async () => (await source.read(signal, beside)).map(({ id, locked }) => `${id} ${locked}`).sort();
    await locked();
    reached = false;
    nova.put(server('1', 'a', { locked: true }));
    nova.unreached = 'a';
    pass(60_000);
    expect(await locked()).toEqual(['1 false', '2 false', '3 false']);
    pass(60_000);
    await locked();
    nova.unreached = null;
    reached = true;
    pass(60_000);
    expect(await locked()).toEqual(['1 true', '2 false', '3 false']);
    pass(60_000);
    await locked();
    expect(resyncs).toEqual(['cell-down all']);
  });
});

describe('servers that are read each time', () => {
  it('are one list, and every host is read', async () => {
    const { nova } = given();
    const source = everyServer(nova, { now: () => nova.nowMs });
    expect(source.listingOf('a')).toBeNull();
    for (let i = 0; i < 2; i++) expect(places(await source.read(signal, beside))).toEqual(['1 a', '2 a', '3 b']);
    expect(nova.calls).toEqual(['every server', 'every server']);
    expect(source.listingOf('a')).toEqual({ from: 'api', checkedAt: '2026-01-01T00:00:00.010Z' });
  });
});
