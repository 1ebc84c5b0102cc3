import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { factsFiles } from './document.ts';
import { causeOfText } from './novaRefusals.ts';
import { consequencesOf, parties } from './parties.ts';
import { drainReasons, releaseReasons, snapshotReasons, waitReasons } from './serviceReasons.ts';
import { formerCodes } from './sharedReasons.ts';
import { taskCodeOf, taskReasonCodes, taskReasonOf, taskReasons } from './taskReasons.ts';

const source = new URL('./', import.meta.url);

describe('the reasons of tasks', () => {
  it('are the ones in docs/reasons.md (npm run generate makes it)', () => {
    for (const [path, text] of factsFiles())
      expect(readFileSync(new URL(`../../../${path}`, source), 'utf8')).toBe(text);
  });

  it('say what they mean in one sentence, and each party has one', () => {
    for (const code of taskReasonCodes) expect(taskReasons[code].meaning).toMatch(/^[A-Z].*\.$/);
    for (const { meaning } of Object.values(parties)) expect(meaning).toMatch(/^[A-Z].*\.$/);
    for (const list of [waitReasons, drainReasons, releaseReasons, snapshotReasons])
      for (const meaning of Object.values(list)) expect(meaning).toMatch(/^[A-Z].*\.$/);
  });

  it('are unknown where no row has the code, also for names that every object has', () => {
    expect(taskReasonOf('vm-locked')).toMatchObject({ party: 'server' });
    expect(taskReasonOf('later-version')).toBeUndefined();
    expect(taskReasonOf('constructor')).toBeUndefined();
  });
});

it('codes of tasks that were replaced have the row of their successor', () => {
  expect(taskCodeOf('server-locked')).toBe('vm-locked');
  for (const [former, now] of Object.entries(formerCodes)) {
    expect(taskReasonOf(former)).toBe(taskReasons[now]);
    expect(taskReasons).not.toHaveProperty(former);
  }
});

describe('the party at fault', () => {
  it.each(taskReasonCodes)('%s: nobody tries another destination for a fault that no destination cures', (code) => {
    const { party, fault } = taskReasons[code];
    const elsewhere: readonly string[] = [
      'destination',
      'room',
      'group',
      'scheduler',
      'network',
      'operator',
      'unknown',
      'kronos',
    ];
    if (fault === 'destination' && code !== 'pinned-zone') expect(elsewhere).toContain(party);
  });

  it('a fault of the VM opens no breaker, and a fault of a host quarantines no VM', () => {
    expect(parties.server).toMatchObject({ quarantines: true, chargesHost: false });
    expect(parties.destination).toMatchObject({ quarantines: false, chargesHost: true });
    expect(parties.operator).toMatchObject({ quarantines: false, chargesHost: false });
    expect(parties.scheduler).toMatchObject({ quarantines: false, chargesHost: false, remembered: true });
  });

  it('is the host for a failure of the host itself, which a breaker counts, and never for a refusal of a kind of server', () => {
    const move = { from: 'cmp1', destination: 'cmp2' };
    const after = (text: string) => consequencesOf(taskReasons[causeOfText(text, move) ?? 'migration-failed'].party);
    expect(after('Compute service of cmp2 is unavailable at this time.')).toMatchObject({
      chargesHost: true,
      remembered: false,
    });
    for (const text of ['No valid host was found.', 'Insufficient compute resources', 'Unacceptable CPU info'])
      expect(after(text), text).toMatchObject({ chargesHost: false, remembered: true });
  });

  it('counts for both where it is unknown, or of a later version', () => {
    expect(consequencesOf('unknown')).toMatchObject({ quarantines: true, chargesHost: true });
    expect(consequencesOf('of a later version')).toBe(consequencesOf('unknown'));
    expect(consequencesOf('toString')).toBe(consequencesOf('unknown'));
  });
});

describe("the cause that Nova's text names", () => {
  const move = { from: 'cmp1', destination: 'cmp2' };
  it.each([
    ['Instance 1 in power_state pending. Cannot live migrate while the instance is in this state.', 'server-refused'],
    ["Operation 'live-migration' not supported for vTPM-enabled instance (1).", 'server-refused'],
    ['Anti-affinity instance group policy was violated', 'group-violated'],
    ['Binding failed for port 1, please check neutron logs for more information.', 'network-refused'],
    ['Timed out waiting for a reply to message ID 1', 'nova-internal'],
    [
      'Insufficient compute resources: Requested instance NUMA topology cannot fit the given host NUMA topology.',
      'claim-refused',
    ],
    ['No valid host was found. There are not enough hosts available.', 'no-valid-host'],
    ['Migration pre-check error: Unacceptable CPU info: CPU does not have compatibility.', 'precheck-refused'],
    ['Compute service of cmp1 is unavailable at this time.', 'source-unavailable'],
    ['Compute service of cmp2 is unavailable at this time.', 'destination-unavailable'],
    ['Live migration failed.', null],
  ])('%s: %s', (text, code) => {
    expect(causeOfText(text, move)).toBe(code);
  });
});
