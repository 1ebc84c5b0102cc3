import { byText, type LogEvent, type Snapshot } from '@kronos/contracts';
import { snapshotOf } from '@kronos/placement/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anonymizer } from './anonymizer.ts';

/** Names as people give them: words, spaces, points, dashes; no name is part of a word of Kronos. */
const name = fc.stringMatching(/^[XQZ][a-z0-9]{3,6}([-. ][XQZ][a-z0-9]{2,5})?$/);

const snapshotWith = (names: readonly string[]): Snapshot => {
  const [aggregate = '', host = '', other = '', vm = '', zone = '', project = '', query = '', trait = ''] = names;
  return snapshotOf({
    policies: { cpu: { imbalanceQuery: query } },
    hosts: {
      [host]: { zone, set: { traits: [`CUSTOM_${trait.toUpperCase().replaceAll(/\W/g, '_')}`, 'HW_CPU_X86_AVX'] } },
      [other]: {
        set: { service: { status: 'disabled', state: 'up', forcedDown: false, disabledReason: `ask ${vm}` } },
      },
    },
    vms: {
      'b7d5b0f0-0000-4000-8000-0123456789ab': {
        host,
        w: { cpu: 0.2 },
        set: {
          name: vm,
          projectId: project,
          windows: ['Mon 01:00-02:00', `ask ${vm}`],
          extraSpecs: { 'hw:cpu_policy': 'dedicated', [`acme:${zone}`]: project },
        },
      },
    },
    snapshot: {
      id: 'whatever-1',
      aggregate,
      notes: [
        { code: 'note', text: `label ${host} of ${vm}, and ${other}.`, detail: { [host]: [vm, 1], deep: { other } } },
      ],
    },
  });
};

const settled = (snapshot: Snapshot, events: readonly LogEvent[] = []) => {
  const names = anonymizer();
  names.learnSnapshot(snapshot);
  for (const event of events) names.learnEvent(event);
  names.settle();
  return names;
};

describe('anonymizing', () => {
  it('leaves no name, wherever it stands', () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 8, maxLength: 8 }), (given) => {
        const snapshot = snapshotWith(given);
        const text = JSON.stringify(settled(snapshot).snapshot(snapshot));
        for (const one of given) expect(text).not.toContain(one);
        expect(text).not.toContain('b7d5b0f0-0000-4000-8000-0123456789ab');
      }),
    );
  });

  it('names no host, VM or place that only a sentence or its details have', () => {
    const gone = 'deadbeef-1111-4111-8111-0123456789ab';
    const empty = snapshotOf({ policies: {}, hosts: {}, vms: {} });
    const from = 'GET https://nova.acme.example:8774/v2.1/os-services: getaddrinfo ENOTFOUND nova.acme.example';
    const problems = [
      { code: 'servers-unknown', text: `Nova is unreachable: ${from}`, detail: { error: 'KRONOS_HTTP_UNREACHABLE' } },
      {
        code: 'server-vanished',
        text: `${gone} of Qhost`,
        detail: { servers: [{ id: gone, host: 'Qhost' }], missing: 1 },
      },
    ];
    const notes = [
      { code: 'hypervisor-type-ignored', text: 'not counted: Zironic (ironic)', detail: { hosts: ['Zironic'] } },
      { code: 'host-label-unmatched', text: 'values that fit no host: Xother', detail: { unknown: 1, new: 'Xnew' } },
    ];
    const snapshot = { ...empty, problems, notes };
    const names = settled(snapshot);
    expect(names.snapshot(snapshot)).toMatchObject({
      problems: [
        { code: 'servers-unknown', text: 'servers unknown', detail: { error: 'KRONOS_HTTP_UNREACHABLE' } },
        {
          text: 'server vanished: 00000000-0000-4000-8000-000000000001, host-1',
          detail: { servers: [{ id: '00000000-0000-4000-8000-000000000001', host: 'host-1' }], missing: 1 },
        },
      ],
      notes: [
        { text: 'hypervisor type ignored: host-2', detail: { hosts: ['host-2'] } },
        { text: 'host label unmatched', detail: { unknown: 1 } },
      ],
    });
  });

  it('leaves no URL and no address in a sentence of an event', () => {
    const names = settled(snapshotOf({ policies: {}, hosts: { Xhost: {} }, vms: {} }));
    const told = (text: string) =>
      names.event({
        type: 'host.actFailed',
        version: 1,
        id: 'x',
        time: '2026-01-01T00:00:00.000Z',
        aggregate: 'a',
        by: { service: 'executor', instance: 'e', version: '1' },
        correlationId: 'x',
        causationId: null,
        data: { drainId: 'd', host: 'Xhost', act: 'disable', attempt: 1, status: null, text },
      }).data.text;
    expect(told('Nova: PUT https://nova.acme.example:8774/v2.1/x: connect ECONNREFUSED 10.1.2.3:8774')).toBe(
      'Nova: PUT left out connect ECONNREFUSED left out',
    );
    expect(told('first: getaddrinfo ENOTFOUND nova.acme.example, fd00:1:2::5 and 52:54:00:ab:cd:ef')).toBe(
      'first: getaddrinfo ENOTFOUND left out, left out and left out',
    );
    const plain = 'at 2026-01-01T10:20:30Z (10:20:30) the ratio was 0.25, after 1.5 s: version 2.96, 3:1';
    expect(told(plain)).toBe(plain);
  });

  it('keeps the order of names of one kind', () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 12, maxLength: 30 }), (hosts) => {
        const snapshot = snapshotOf({ policies: {}, hosts: Object.fromEntries(hosts.map((h) => [h, {}])), vms: {} });
        const other = settled(snapshot).snapshot(snapshot);
        const pairs = snapshot.hosts.map((host, i) => [host.name, other.hosts[i]?.name ?? ''] as const);
        const byOld = pairs.toSorted(([a], [b]) => byText(a, b)).map(([, now]) => now);
        expect(byOld).toEqual(byOld.toSorted(byText));
      }),
    );
  });

  it('keeps figures, times, policies and what Nova means by its words', () => {
    const snapshot = snapshotWith(['Xagg', 'Xhost', 'Zhost', 'Qvm', 'Zzone', 'Xproject', 'Qquery', 'Xtrait']);
    const other = settled(snapshot).snapshot(snapshot);
    expect(other.time).toBe(snapshot.time);
    expect(other.policies[0]).toEqual({
      ...snapshot.policies[0],
      imbalanceQuery: 'query_1',
      vmProfileQuery: 'query_2',
    });
    expect(other.hosts[0]?.traits).toEqual(['CUSTOM_1', 'HW_CPU_X86_AVX']);
    expect(other.servers[0]).toMatchObject({
      status: 'ACTIVE',
      windows: ['Mon 01:00-02:00', 'left out'],
      extraSpecs: { 'hw:cpu_policy': 'dedicated' },
      resources: snapshot.servers[0]?.resources,
    });
    expect(other.hostReadings[0]).toMatchObject({ query: 'query_1', values: { 'host-1': 0.2 } });
  });

  it('follows a name through ids and sentences of the log', () => {
    const snapshot = snapshotWith(['web eu/1', 'Xhost', 'Zhost', 'Qvm', 'Zzone', 'Xproject', 'Qquery', 'Xtrait']);
    const event: LogEvent = {
      type: 'plan.rejected',
      version: 1,
      id: 'control:00000000-0000-4000-8000-000000000001',
      time: '2026-01-01T00:00:00.000Z',
      aggregate: 'web eu/1',
      by: { service: 'operator', instance: 'ada@desk', version: '1' },
      correlationId: '00000000-0000-4000-8000-000000000001',
      causationId: 'cycle.decided:web=20eu=2F1-7',
      data: {
        commandId: '00000000-0000-4000-8000-000000000001',
        comment: 'Xhost is sick',
        planId: 'web=20eu=2F1-7',
        steps: null,
      },
    };
    expect(settled(snapshot, [event]).event(event)).toMatchObject({
      aggregate: 'aggregate-1',
      by: { instance: 'person-1' },
      causationId: 'cycle.decided:aggregate-1-7',
      data: { comment: 'left out', planId: 'aggregate-1-7' },
    });
  });
});
