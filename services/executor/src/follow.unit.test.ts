import type { ComputeService, InstanceAction, InstanceActionEvent, Nova } from '@kronos/openstack';
import { describe, expect, it } from 'vitest';
import { readAccount } from './follow.ts';

const TIME = '2026-01-05T00:00:00.000000';
const event = (name: string, more: Partial<InstanceActionEvent> = {}): InstanceActionEvent => ({
  event: name,
  startedAt: TIME,
  finishedAt: TIME,
  result: 'Success',
  traceback: null,
  host: 'controller',
  details: null,
  ...more,
});
const underWay = { finishedAt: null, result: null };

const service = (id: string, host: string, state: 'up' | 'down'): ComputeService => ({
  id,
  host,
  zone: 'nova',
  status: 'enabled',
  state,
  cellDown: false,
  forcedDown: false,
  disabledReason: null,
  binary: 'nova-compute',
  updatedAt: TIME,
});

const told = (...events: readonly InstanceActionEvent[]) => toldBeside([], ...events);

function toldBeside(services: ComputeService[], ...events: readonly InstanceActionEvent[]) {
  const action: InstanceAction = {
    action: 'migrate',
    serverId: 'vm1',
    requestId: 'req-1',
    startedAt: TIME,
    updatedAt: TIME,
    message: events.some(({ result }) => result === 'Error') ? 'Error' : null,
    events,
  };
  const nova: Pick<Nova, 'getInstanceAction' | 'listInstanceActions' | 'listServices'> = {
    getInstanceAction: async () => action,
    listInstanceActions: async () => [action],
    listServices: async () => services,
  };
  const move = { serverId: 'vm1', from: 'h1', destination: 'h2' };
  return readAccount(nova, move, 'req-1', new AbortController().signal);
}

describe('what Nova says about a migration that failed', () => {
  it('is nothing yet while nova-conductor has not ended the action, whose reason comes after the migration is set to error', async () => {
    for (const name of ['conductor_migrate_server', 'cold_migrate', 'conductor_live_migrate_instance'])
      expect(await told(event(name, underWay)), name).toBeNull();
  });

  it('is the reason as soon as there is one', async () => {
    const failed = event('cold_migrate', { result: 'Error', details: 'No valid host was found.' });
    expect(await told(event('conductor_migrate_server', underWay), failed)).toMatchObject({
      story: { text: 'No valid host was found.', event: 'cold_migrate' },
      asked: true,
    });
  });

  it('is that there is no reason, when nova-conductor is done and a nova-compute ended no event', async () => {
    const account = await told(event('conductor_live_migrate_instance'), event('compute_live_migration', underWay));
    expect(account).toMatchObject({ story: null, asked: true });
  });

  it('says nothing of a host of which Nova has two records', async () => {
    const services = [service('1', 'h1', 'down'), service('2', 'h2', 'up'), service('3', 'h2', 'down')];
    const account = await toldBeside(services, event('cold_migrate', { result: 'Error', details: 'Gone.' }));
    expect(account?.hosts).toEqual({ source: 'down', destination: 'unknown' });
  });
});
