import { Cloud, parseScenario, type ServerFaultSetting } from '@kronos/simcloud';
import { expect, it } from 'vitest';
import { isGivenUp, isStuck, STUCK_MS } from './operator.ts';

const START = Date.UTC(2026, 0, 1);

/** A server whose migration was requested at `START`. */
function moving(fault: ServerFaultSetting | null): { readonly cloud: Cloud; readonly uuid: string } {
  const cloud = new Cloud(
    parseScenario({
      hosts: [{ name: 'h1' }, { name: 'h2' }],
      flavors: [{ name: 'small', vcpus: 2, memoryMb: 4096, diskGb: 10 }],
      servers: [{ name: 'v1', host: 'h1', flavor: 'small' }],
    }),
    { startMs: START },
  );
  if (fault !== null) cloud.serverFaults.set(cloud.server('v1').uuid, fault);
  const { admin } = cloud;
  const { uuid } = cloud.server('v1');
  const caller = { userId: admin.id, projectId: admin.projectId, requestId: 'req-1' };
  cloud.liveMigrate(START, caller, uuid, { host: 'h2', force: false, async: true });
  return { cloud, uuid };
}

it('a server whose request was lost is stuck after half an hour', () => {
  const { cloud, uuid } = moving({ kind: 'lost', times: 1 });
  cloud.advance(START + STUCK_MS);
  expect(isStuck(cloud, uuid, START + STUCK_MS)).toBe(true);
});

it('a server whose request waits for the conductor is not stuck', () => {
  const { cloud, uuid } = moving({ kind: 'conductor-delay', seconds: 240, times: 1 });
  for (const afterMs of [1000, 60_000, 200_000]) {
    cloud.advance(START + afterMs);
    expect([cloud.migrations.length, isStuck(cloud, uuid, START + afterMs)]).toEqual([0, false]);
  }
});

it('a server whose migration runs for long is not stuck', () => {
  const { cloud, uuid } = moving({ kind: 'hang', times: 1 });
  cloud.advance(START + 2 * STUCK_MS);
  expect(cloud.migrations.at(-1)?.status).toBe('running');
  expect(isStuck(cloud, uuid, START + 2 * STUCK_MS)).toBe(false);
});

it('a server that has arrived is not stuck', () => {
  const { cloud, uuid } = moving(null);
  cloud.advance(START + 2 * STUCK_MS);
  expect(isStuck(cloud, uuid, START + 2 * STUCK_MS)).toBe(false);
});

it('a server with an abandoned migration is given up, until Nova has accepted another one', () => {
  const { cloud, uuid } = moving(null);
  let now = START;
  for (; now < START + 60_000 && cloud.migrations.at(-1)?.status !== 'preparing'; now += 10) cloud.advance(now);
  expect(isGivenUp(cloud, uuid)).toBe(false);
  cloud.killHost(now, 'h1');
  cloud.startHost(now + 60_000, 'h1');
  now += 120_000;
  cloud.advance(now);
  expect([cloud.migrations.at(-1)?.status, isGivenUp(cloud, uuid)]).toEqual(['preparing', true]);
  cloud.serverFaults.set(uuid, { kind: 'conductor-delay', seconds: 240, times: 1 });
  const { admin } = cloud;
  const caller = { userId: admin.id, projectId: admin.projectId, requestId: 'req-2' };
  cloud.liveMigrate(now, caller, uuid, { host: 'h2', force: false, async: true });
  cloud.advance(now + 60_000);
  expect([cloud.migrations.length, isGivenUp(cloud, uuid)]).toEqual([1, false]);
});
