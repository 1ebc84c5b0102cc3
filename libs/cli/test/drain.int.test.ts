import { control } from '@kronos/operator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliWorld, openCliWorld } from './world.ts';

/** The command on a log and snapshots, with no service running. */
describe('kronos drain', () => {
  let world: CliWorld;
  beforeAll(async () => {
    world = await openCliWorld({ seed: 4, cycles: 3, aggregates: ['gpu'], hosts: 3, vmsPerHost: 3 });
  });
  afterAll(() => world.close());

  it('shows where each VM would go, and asks for nothing by itself', async () => {
    const { status, out } = await world.kronos('drain gpu-compute-1');
    expect(status).toBe(0);
    expect(out).toMatch(/^gpu-compute-1 \(gpu\), as seen at /);
    expect(out).toContain('No drain was requested. Add --yes to drain.');
    const shown = await world.kronos('drain gpu-compute-1 gpu-compute-2 --json');
    const hosts = JSON.parse(shown.out) as { host: string; moves: { to: string }[] }[];
    expect(hosts.map(({ host }) => host)).toEqual(['gpu-compute-1', 'gpu-compute-2']);
    for (const { moves } of hosts) for (const { to } of moves) expect(to).toBe('gpu-compute-3');
    expect((await world.kronos('drain gpu-compute-1', { answer: 'n' })).status).toBe(1);
    expect((await world.kronos('undrain gpu-compute-1')).err).toContain('is not being drained by Kronos');
  });

  it('one by one, the other hosts can take the VMs of each', async () => {
    const { status, out } = await world.kronos('drain --all -a gpu --one-by-one --hook true', { answer: 'n' });
    expect(status).toBe(1);
    expect(out.match(/^gpu-compute-\d \(gpu\), as seen at .*: 3 VMs$/gm)).toHaveLength(3);
    for (const host of [1, 2, 3]) expect(out).toContain(` -> gpu-compute-${host}, about `);
    expect(out).not.toContain('is disabled');
    expect(out).toMatch(/^2 of 3 hosts cannot be emptied: gpu-compute-1 \(1 VM\), gpu-compute-3 \(1 VM\)\./m);
  });

  it('asks once, and takes a drain back before anything was done', async () => {
    expect((await world.kronos('drain gpu-compute-2 --yes -r upgrade')).out).toContain('gpu-compute-2 will be drained');
    expect((await world.kronos('drain gpu-compute-2 --yes')).out).toContain(
      'is being drained already: requested by ada@desk',
    );
    const preview = (await world.kronos('drain gpu-compute-2')).out;
    expect(preview).toContain('It is being drained already, requested by ada@desk');
    expect(preview).toContain(
      '\nNo further drain was requested. 1 drain requested before goes on: gpu-compute-2 (kronos status).\n',
    );
    expect(preview).not.toContain('Add --yes');
    expect((await world.kronos('drain gpu-compute-1 gpu-compute-2', { answer: 'n' })).out).toContain(
      'No further drain was requested. 1 drain',
    );
    expect((await world.kronos('status')).out).toContain('gpu-compute-2: its service is being disabled');
    expect((await world.kronos('undrain gpu-compute-2')).out).toContain('withdrawn before it started');
    expect((await world.kronos('status')).out).not.toContain('gpu-compute-2: its service');
  });

  it('names the aggregate in which a drain of the host is open, and begins no second one', async () => {
    const asking = { commandId: 'elsewhere', person: 'bob', version: 'test', nowMs: Date.now(), comment: null };
    await world.log.append(control('host.drainAsked', 'old', { host: 'gpu-compute-3' }, asking));
    expect((await world.kronos('drain gpu-compute-3')).out).toContain(
      'It is being drained already in old, requested by bob',
    );
    expect((await world.kronos('drain gpu-compute-3 --yes')).out).toContain(
      'gpu-compute-3 is being drained already in old: requested by bob',
    );
    const { status, err } = await world.kronos('undrain gpu-compute-3');
    expect(status).toBe(2);
    expect(err).toContain('gpu-compute-3 is being drained in old');
    expect(err).toContain('[engine] aggregates');
  });

  it('refuses while the aggregate is paused, because nothing would be done', async () => {
    await world.kronos('pause -a gpu');
    const { status, err } = await world.kronos('drain gpu-compute-1 --yes');
    expect(status).toBe(2);
    expect(err).toContain('gpu is paused by ada@desk');
    await world.kronos('resume -a gpu');
  });

  it.each([
    ['drain gpu-compute-9', 'gpu-compute-'],
    ['drain', 'no host is given'],
    ['drain --all', '--one-by-one'],
    ['drain gpu-compute-1 --all --one-by-one --hook true', 'both'],
    ['drain gpu-compute-1 --one-by-one', 'belong together'],
    ['drain gpu-compute-1 --one-by-one --hook true --max-parallel 2', 'both'],
    ['drain gpu-compute-1 --watch --json', 'json and yaml'],
    ['drain gpu-compute-1 --max-parallel 0', 'whole number of at least 1'],
    ['drain gpu-compute-1 --hook-timeout soon', 'duration'],
    ['undrain gpu-compute-9', 'is not being drained'],
  ])('%s: says what is wrong', async (line, text) => {
    const { status, err } = await world.kronos(line);
    expect(status).toBe(2);
    expect(err).toContain(text);
  });
});
