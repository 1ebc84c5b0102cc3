import { writeCheckpoint } from '@kronos/checkpoints';
import { type Actor, messageId } from '@kronos/contracts';
import { aggregateState } from '@kronos/projections';
import { foldAll } from '@kronos/projections/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliWorld, openCliWorld } from './world.ts';

const by: Actor = { service: 'ledger', instance: 'test', version: '0.0.0' };
const aggregates = ['gpu'];
let world: CliWorld;
beforeAll(async () => {
  world = await openCliWorld({ seed: 4, cycles: 12, hosts: 3, vmsPerHost: 3, planner: 'greedy', aggregates });
});
afterAll(() => world?.close());

/** The log folded up to a sequence. */
const folded = (to: number) => foldAll(world.log.replay({ to }));

it('a time in a body that the server stamp contradicts is shown as the stamp bounds it', async () => {
  const event = {
    type: 'instance.unquarantined',
    version: 1,
    id: messageId.control('late'),
    time: '2099-01-01T00:00:00.000Z',
    aggregate: 'gpu',
    by: { service: 'operator', instance: 'ada', version: '0' },
    correlationId: 'late',
    causationId: null,
    data: { commandId: 'late', comment: null, serverId: 'no-vm' },
  } as const;
  await world.log.append(event);
  const { out } = await world.kronos('tap controls --since all --end');
  expect(out).toContain('no-vm');
  expect(out).not.toContain('2099');
});

describe('a command', () => {
  it('that folds the log from its first event says nothing on stderr', async () => {
    expect((await world.kronos('quarantine list')).err).toBe('');
  });

  it('starts from the newest checkpoint, and says nothing on stderr', async () => {
    const last = await world.log.lastSequence('KRONOS_LOG');
    const { state, anchor } = await folded(last);
    const asked = { sequence: 1, atMs: 0, commandId: 'c', by: 'nobody', comment: 'said by no event', seconds: -1 };
    const gpu = state.aggregates.get('gpu');
    if (gpu === undefined) throw new Error('no gpu');
    const forged = {
      ...state,
      aggregates: new Map([['gpu', { ...gpu, operatorQuarantines: new Map([['vm-of-no-event', asked]]) }]]),
    };
    expect(aggregateState(state, 'gpu').operatorQuarantines.has('vm-of-no-event')).toBe(false);
    await writeCheckpoint(world.log, forged, { anchor, by, nowMs: 0 });
    const { status, out, err } = await world.kronos('quarantine list');
    expect({ status, err }).toEqual({ status: 0, err: '' });
    expect(out).toContain('said by no event');
    expect((await world.kronos('pause -a gpu')).err).toBe('');
    expect((await world.kronos('explain cycle -a gpu')).err).toBe('');
    expect((await world.kronos('plans --since all')).err).toBe('');
  });

  it('skips one that cannot be trusted, says so, and continues without it', async () => {
    const { state } = await folded(5);
    await writeCheckpoint(world.log, { ...state, sequence: 1_000_000 }, { anchor: 'elsewhere', by, nowMs: 0 });
    const { status, out, err } = await world.kronos('quarantine list --json');
    expect(status).toBe(0);
    expect(JSON.parse(out)).toHaveLength(1);
    expect(err).toMatch(/^kronos: skipped the checkpoint at event 1000000: the log ends at (\d+)\n$/);
  });
});
