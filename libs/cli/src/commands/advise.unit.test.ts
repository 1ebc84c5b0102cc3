import { snapshotOf } from '@kronos/placement/testing';
import { describe, expect, it } from 'vitest';
import { confirmed, suspects } from '../advise/leaked.ts';

describe('claims in Placement of servers that are elsewhere', () => {
  const { servers } = snapshotOf({
    policies: {},
    hosts: { h1: {}, h2: {} },
    vms: {
      home: { host: 'h1' },
      gone: { host: 'h2' },
      seen: { host: 'h2', set: { alsoOn: ['h1'] } },
      moves: { host: 'h2' },
    },
  });
  const row = { id: 7, uuid: 'm7', type: 'live-migration', status: 'running', sourceHost: 'h1', destHost: 'h2' };
  const migrations = [{ ...row, serverId: 'moves' }];
  const amounts = { VCPU: 2 };
  const allocations = { home: amounts, gone: amounts, seen: amounts, moves: amounts, m7: amounts, unknown: amounts };
  const found = suspects({ servers, migrations }, [{ host: 'h1', providerId: 'p1', allocations }]);
  const now = (host: string, taskState: string | null = null, vmState = 'active') =>
    confirmed(found, async () => ({ host, taskState, vmState }));

  it('acts: a server that nothing moves leaks what it claims of another host', async () => {
    const leak = { serverId: 'gone', serverName: 'gone', host: 'h2', of: 'h1', providerId: 'p1', resources: amounts };
    expect(found).toEqual([leak]);
    expect(await now('h2')).toEqual([leak]);
  });

  it('refuses: a server that has moved since, is busy, or waits for the end of a resize leaks nothing', async () => {
    expect(await now('h1')).toEqual([]);
    expect(await now('h2', 'migrating')).toEqual([]);
    expect(await now('h2', null, 'resized')).toEqual([]);
  });
});
