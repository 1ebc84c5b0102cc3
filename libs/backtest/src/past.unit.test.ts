import type { Hypervisor } from '@kronos/openstack';
import { describe, expect, it } from 'vitest';
import { DEED_MS, FLAVORS, live } from '../testing/forward.ts';
import { type NovaHistory, pastOfCloud } from './past.ts';

const bornMs = Date.parse('2026-03-01T00:00:00Z');
const CONFIRMED_MS = 2 * DEED_MS;
const [small = 0, , large = 0] = FLAVORS.map(({ ramMb }) => ramMb);
/** MiB that Placement counts on each host beyond the servers. */
const OTHERS = 3072;
const HOSTS = ['host-0', 'host-1'];

const hypervisor = (host: string): Hypervisor => ({
  id: host,
  hypervisorHostname: host,
  hypervisorType: 'QEMU',
  hypervisorVersion: 8_000_000,
  state: 'up',
  status: 'enabled',
  service: { id: host, host, disabledReason: null },
});

/** A server that people resize from host-0 to host-1, and what Nova and Placement show of it before or after they confirm that. */
function resized(status: 'finished' | 'confirmed'): NovaHistory {
  const lived = live('a', bornMs, [{ deed: 'resize', to: 1, flavor: 2 }, { deed: 'wait' }, { deed: 'wait' }], false);
  // Its row tells the number of the flavor that the other one had before.
  const mover = live('b', bornMs, [{ deed: 'move', to: 3, end: 'completed' }], false);
  const open = status === 'finished';
  const used = { 'host-0': OTHERS + (open ? small : 0), 'host-1': OTHERS + large };
  return {
    readMs: lived.readMs,
    sinceMs: bornMs,
    aggregates: [],
    services: [],
    hypervisors: HOSTS.map(hypervisor),
    serverGroups: [],
    records: [
      {
        server: { ...lived.server, ...(open ? { status: 'VERIFY_RESIZE', vmState: 'resized' } : {}) },
        migrations: lived.migrations.map((row) => ({
          ...row,
          status,
          updatedAt: open ? row.updatedAt : new Date(bornMs + DEED_MS + CONFIRMED_MS).toISOString(),
        })),
        actions: lived.actions,
      },
      { ...mover, migrations: mover.migrations.map((row) => ({ ...row, sourceCompute: 'host-2' })), actions: [] },
    ],
    capacity: Object.entries(used).map(([host, mb]) => [
      host,
      {
        traits: [],
        inventory: {
          MEMORY_MB: { total: 65_536, capacity: 65_536, used: mb, minUnit: 1, maxUnit: 65_536, stepSize: 1 },
        },
      },
    ]),
    failures: [],
  };
}

describe.each(['finished', 'confirmed'] as const)('a resize whose row is %s', (status) => {
  const past = pastOfCloud(resized(status));
  const at = (ms: number) => {
    const { lists, capacity } = past.at(bornMs + ms);
    const [server] = lists.servers.ok ? lists.servers.value : [];
    return {
      server: { host: server?.host, status: server?.status, vmState: server?.vmState, taskState: server?.taskState },
      used: HOSTS.map((host) => (capacity.providers.get(host)?.inventory.MEMORY_MB?.used ?? 0) - OTHERS),
    };
  };

  it('claims the old flavor on its source, and nothing elsewhere, before it begins', () => {
    expect(at(DEED_MS - 1)).toEqual({
      server: { host: 'host-0', status: 'ACTIVE', vmState: 'active', taskState: null },
      used: [small, 0],
    });
  });

  it('claims each flavor on its side while it is copied', () => {
    expect(at(DEED_MS + 1)).toEqual({
      server: { host: 'host-0', status: 'RESIZE', vmState: 'active', taskState: 'resize_migrating' },
      used: [small, large],
    });
  });

  it('waits on its destination in VERIFY_RESIZE until somebody confirms it', () => {
    expect(at(2 * DEED_MS)).toEqual({
      server: { host: 'host-1', status: 'VERIFY_RESIZE', vmState: 'resized', taskState: null },
      used: [small, large],
    });
  });

  it('frees the source when somebody has confirmed it, and not before', () => {
    const end = at(DEED_MS + CONFIRMED_MS + 1);
    expect(end.server).toMatchObject({ host: 'host-1', status: status === 'finished' ? 'VERIFY_RESIZE' : 'ACTIVE' });
    expect(end.used).toEqual([status === 'finished' ? small : 0, large]);
  });
});

it('takes the power state from the status: that of today is of a compute that was restarted', () => {
  const lived = live('a', bornMs, [{ deed: 'wait' }, { deed: 'stop' }], false);
  const history = resized('confirmed');
  const past = pastOfCloud({ ...history, records: [{ ...lived, server: { ...lived.server, powerState: 0 } }] });
  const powerAt = (atMs: number) => {
    const { servers } = past.at(atMs).lists;
    return servers.ok ? servers.value[0]?.powerState : null;
  };
  expect([powerAt(bornMs + 1), powerAt(history.readMs - 1)]).toEqual([1, 4]);
});
