import { DAY_MS, iso, type Snapshot } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { TEST_START_MS, testLog } from '../testing/index.ts';
import { newRefusals } from './refusals.ts';
import { MAX_REFUSALS } from './state.ts';

function refusedLog(cause = 'scheduler') {
  const log = testLog();
  log.configured();
  const task = `${log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }])}-s1`;
  log.started({ task });
  const reason = { code: 'no-valid-host', text: 'No valid host was found.' };
  log.at(10).failed({ task, cause, reason });
  return log;
}
const known = (log: ReturnType<typeof testLog>) => [...log.state().refusals.values()];

describe('what Nova refused', () => {
  it('acts: the destination is remembered with the words, and nobody is charged', () => {
    const log = refusedLog();
    expect(known(log)).toMatchObject([
      {
        serverId: 'vm1',
        host: 'h2',
        text: 'No valid host was found.',
        atMs: TEST_START_MS + 10_000,
        shape: null,
        mark: null,
      },
    ]);
    expect([log.state().vmFailures.size, log.state().hostFailures.size]).toEqual([0, 0]);
  });

  it.each(['server', 'destination', 'operator', 'unknown'])('refuses: a failure by %s is no refusal', (cause) => {
    expect(known(refusedLog(cause))).toEqual([]);
  });

  it('the first decision that sees it says what the server and the host are; a later one changes nothing', () => {
    const log = refusedLog();
    const seen = (mark: string) => [{ serverId: 'vm1', host: 'h2', shape: 's', mark }];
    log.at(60).decided('none', [], { novaRefusals: seen('m1') });
    log.at(120).decided('none', [], { novaRefusals: seen('m2') });
    expect(known(log)).toMatchObject([{ shape: 's', mark: 'm1' }]);
  });

  it('a decision notes nothing that would look like a change of the host later', () => {
    const server = { id: 'vm1', host: 'h1', resources: { VCPU: 1 }, extraSpecs: {}, vcpus: 1, ramMb: 1024, diskGb: 0 };
    const host = { name: 'h2', hypervisorVersion: 8_002_002, traits: ['HW_CPU_X86_AVX2'] as string[] | null };
    const sure = {
      servers: [server],
      hosts: [host],
      problems: [] as object[],
      observedFrom: iso(TEST_START_MS + 10_000),
    };
    const seen = (more: Partial<typeof sure> = {}) =>
      newRefusals(refusedLog().state(), { ...sure, ...more } as unknown as Snapshot);
    expect(seen()).toMatchObject([{ serverId: 'vm1', host: 'h2' }]);
    expect(seen({ hosts: [{ ...host, traits: null }] }), 'traits that could not be read').toBeUndefined();
    expect(seen({ problems: [{ code: 'server-vanished' }] }), 'a list that may not be whole').toBeUndefined();
    expect(seen({ observedFrom: iso(TEST_START_MS + 9_999) }), 'a list from before the refusal').toBeUndefined();
  });

  it('does nothing any more after a day, or when a person released the host', () => {
    const later = refusedLog();
    later.at(DAY_MS / 1000 + 3700).decided('none', []);
    later.at(DAY_MS / 1000 + 7400).decided('none', []);
    expect(known(later)).toEqual([]);
    const released = refusedLog();
    released.at(20).hostReleased('h2');
    expect(known(released)).toEqual([]);
  });

  it('is bounded: the newest are kept', () => {
    const log = testLog();
    const vms = Array.from({ length: MAX_REFUSALS + 5 }, (_, i) => ({ serverId: `vm${i}`, from: 'h1', to: 'h2' }));
    const plan = log.released(vms);
    vms.forEach((_, i) => {
      log.failed({ task: `${plan}-s${i + 1}`, cause: 'scheduler', started: false });
    });
    const hosts = known(log);
    expect(hosts).toHaveLength(MAX_REFUSALS);
    expect(hosts.some(({ serverId }) => serverId === 'vm4')).toBe(false);
  });
});
