import { streamNames } from '@kronos/contracts';
import { bareConnection } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliWorld, openCliWorld } from './world.ts';

let world: CliWorld;
beforeAll(async () => {
  world = await openCliWorld({ seed: 3, cycles: 6, aggregates: ['gpu'] });
});
afterAll(() => world.close());

const remove = async (stream: string): Promise<void> => {
  const connection = await bareConnection(world.natsUrl);
  await connection.request(`$JS.API.STREAM.DELETE.${stream}`);
  await connection.close();
};

/** Streams that were deleted so far. */
const gone: string[] = [streamNames.services];

/** The commands that read. Each has to end, whatever stream is gone. */
const READS = ['status', 'aggregates', 'plans', 'tasks', 'quarantine list', 'tap --since 1h --end'];

describe('a stream is gone, as KRONOS_SERVICES is after the restart of a single server', () => {
  it('status and aggregates end, and say that the services are unknown and what to do', async () => {
    await remove(streamNames.services);
    const status = await world.kronos('status');
    expect(status.out).toContain('KRONOS_SERVICES');
    expect(status.out).toContain('kronos provision');
    const aggregates = await world.kronos('aggregates');
    expect(aggregates.out).toContain('gpu');
  });

  it.each([streamNames.services, streamNames.snapshots, streamNames.checkpoints])(
    'without %s every reading command ends',
    async (stream) => {
      await remove(stream);
      gone.push(stream);
      for (const line of READS) {
        const { status, out, err } = await world.kronos(line);
        // Its table, or an error that names what is missing.
        expect(status === 0 || gone.some((one) => `${out}${err}`.includes(one)), `${line}: ${out}${err}`).toBe(true);
      }
    },
    60_000,
  );
});
