import type { Snapshot } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { memoryHistory, operate } from '../testing/index.ts';
import { calibrate, calibratePlan, errorOf } from './calibration.ts';
import { explainDecision } from './explain.ts';
import { lay } from './overlay.ts';

const operation = operate({
  seed: 11,
  cycles: 60,
  aggregates: ['gpu'],
  hosts: 5,
  vmsPerHost: 5,
  searchWorkLimit: 40_000,
  failures: 0,
  commands: 0,
});
const history = memoryHistory(operation.events, operation.snapshots);
const [snapshot] = operation.snapshots;
if (snapshot === undefined) throw new Error('no snapshot');
const [server] = snapshot.servers;
if (server === undefined) throw new Error('no server');
const to = snapshot.hosts.find(({ name }) => name !== server.host)?.name ?? '';
const move = { serverId: server.id, from: server.host, to };
const after = lay({ hosts: new Map([[server.id, to]]), still: new Set() }, snapshot);
const policy = snapshot.policies.find(({ enabled }) => enabled);
if (policy === undefined) throw new Error('no policy');

/** The snapshot with the value of a host changed, and a threshold that any error exceeds. */
const withValue = (of: Snapshot, host: string, change: (value: number) => number): Snapshot => ({
  ...of,
  hostReadings: of.hostReadings.map((reading) => ({
    ...reading,
    values: { ...reading.values, [host]: change(reading.values[host] ?? 0) },
  })),
});
const strict: Snapshot = { ...snapshot, policies: snapshot.policies.map((one) => ({ ...one, threshold: 0.001 })) };

describe('the calibration of a plan', () => {
  it('does nothing while hosts have what was predicted', () => {
    const { hosts, off } = calibrate(strict, [move], [after, after]);
    expect(hosts.map(({ host }) => host)).toContain(to);
    for (const host of hosts) expect(errorOf(host)).toBe(0);
    expect(off).toEqual([]);
  });

  it('is silent about an error that is no larger than the threshold', () => {
    const loose = { ...snapshot, policies: snapshot.policies.map((one) => ({ ...one, threshold: 0.5 })) };
    expect(calibrate(loose, [move], [null, withValue(after, to, (value) => value + 0.1)]).off).toEqual([]);
  });

  it('names the sizes of hosts when sources lose what was predicted and destinations gain more', () => {
    const { off } = calibrate(strict, [move], [null, withValue(after, to, (value) => value + 0.05)]);
    expect(off[0]).toMatchObject({ cause: 'host-sizes' });
    expect(off[0]?.error).toBeCloseTo(0.05);
  });

  it('names the label when the hosts do not change at all', () => {
    expect(calibrate(strict, [move], [snapshot, snapshot]).off[0]).toMatchObject({ cause: 'wrong-label' });
  });

  it('names the load when neither end has what was predicted', () => {
    const both = withValue(
      withValue(after, to, (value) => value + 0.06),
      server.host,
      (value) => value + 0.06,
    );
    expect(calibrate(strict, [move], [both, both]).off[0]).toMatchObject({ cause: 'load-depends-on-host' });
  });

  it('takes no value of a host that other moves have changed', () => {
    const wrong = withValue(after, to, () => 1);
    const { hosts } = calibrate(strict, [move], [wrong, wrong], [new Set([to]), new Set([to])]);
    expect(hosts.find(({ host }) => host === to)).toMatchObject({ soon: null, later: null });
  });

  it('finds the snapshots after the moves of a recorded plan, and none for one that was not carried out', async () => {
    const found = [];
    for (const { event } of operation.events) {
      if (event.type !== 'cycle.decided' || event.data.plan === null) continue;
      const explained = await explainDecision(history, { aggregates: ['gpu'], planId: event.data.plan.id });
      found.push({ release: event.data.release, calibration: await calibratePlan(history, explained) });
    }
    const done = found.flatMap(({ calibration }) => calibration ?? []);
    expect(done.length).toBeGreaterThan(0);
    expect(done.flatMap(({ hosts }) => hosts).some(({ soon, later }) => soon !== null || later !== null)).toBe(true);
    for (const { release, calibration } of found) if (release !== 'released') expect(calibration).toBeNull();
  });
});
