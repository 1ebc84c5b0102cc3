import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Heard,
  type HostReport,
  heardByHost,
  heardReport,
  readReport,
  type Said,
  type StoredReport,
  unseenNotices,
} from './reports.ts';

const heard = (server: string | null, changes: Partial<Heard> = {}): Heard => ({
  server,
  deleted: false,
  own: false,
  here: true,
  event: 'instance.update',
  ...changes,
});
const stored = (report: HostReport, sequence: number): StoredReport => ({ report, sequence });

describe('the list of a host', () => {
  it('is unknown until it was read, and then follows the notifications', () => {
    const first = heardReport(null, [heard('a')]);
    expect(first.instances).toBeNull();
    const read = readReport(stored(first, 1), new Set(['a', 'b'])) ?? first;
    expect(read.instances).toEqual(['a', 'b']);
    const moved = heardReport(stored(read, 2), [
      heard('c'),
      heard('a', { here: false }),
      heard('b', { deleted: true }),
    ]);
    expect(moved.instances).toEqual(['c']);
  });

  it('does not get a deleted server back', () => {
    const read = readReport(null, new Set(['a']));
    const gone = heardReport(read === null ? null : stored(read, 1), [heard('a', { deleted: true })]);
    expect(heardReport(stored(gone, 2), [heard('a')])).toMatchObject({ instances: [], notices: [{ deleted: true }] });
  });

  it('is not reported again when a read shows the same', () => {
    const read = readReport(null, new Set(['b', 'a']));
    expect(read?.instances).toEqual(['a', 'b']);
    expect(read === null ? undefined : readReport(stored(read, 1), new Set(['a', 'b']))).toBeNull();
  });
});

describe('what a reader has not seen', () => {
  it('is what was added since, and nothing a second time', () => {
    const one = stored(heardReport(null, [heard('a')]), 4);
    const two = stored(heardReport(one, [heard('b', { own: true })]), 9);
    expect(unseenNotices(two.report, 4).notices.map((notice) => notice.server)).toEqual(['b']);
    expect(unseenNotices(two.report, 9).notices).toEqual([]);
    expect(unseenNotices(two.report, 0).notices.map((notice) => notice.server)).toEqual(['a', 'b']);
  });

  it('is every notice, or a gap, whichever messages a reader misses', () => {
    const batch = fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 40 });
    const history = fc.array(fc.record({ batch, read: fc.boolean(), steps: fc.integer({ min: 1, max: 3 }) }), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(history, (messages) => {
        let newest: StoredReport | null = null;
        let seen = 0;
        let unheard = new Set<string>();
        let sequence = 0;
        for (const { batch, read, steps } of messages) {
          const servers = batch.map(String);
          sequence += steps;
          newest = stored(
            heardReport(
              newest,
              servers.map((server) => heard(server)),
            ),
            sequence,
          );
          unheard = unheard.union(new Set(servers));
          if (!read) continue;
          const { notices, gap } = unseenNotices(newest.report, seen);
          const named = new Set(notices.map((notice) => notice.server));
          if (!gap) expect([...named].sort()).toEqual([...unheard].sort());
          seen = sequence;
          unheard = new Set();
        }
      }),
      { numRuns: 300 },
    );
  });

  it('shows a gap only to a reader that is far behind', () => {
    let newest = stored(heardReport(null, [heard('first')]), 1);
    for (let i = 2; i < 200; i++) newest = stored(heardReport(newest, [heard(`vm-${i}`)]), i);
    expect(unseenNotices(newest.report, 0).gap).toBe(true);
    expect(unseenNotices(newest.report, 150)).toMatchObject({ gap: false });
    expect(newest.report.notices.length).toBeLessThan(70);
  });
});

describe('what a batch of notifications says about each host', () => {
  const said = (server: Said['server'], changes: Partial<Said> = {}): Said => ({
    server,
    event: 'instance.update',
    compute: null,
    publisherHost: 'conductor',
    ...changes,
  });
  const on = (host: string | null, deleted = false) => ({ id: 'a', host, deleted });
  const list = (host: string, ...instances: string[]) =>
    [host, stored({ instances, notices: [], completeFrom: 0, after: 0 }, 1)] as const;

  it('tells the host where the server is, and every host that has it on its list', () => {
    const lists = [list('old', 'x', 'a'), list('new'), list('other', 'x')];
    expect(heardByHost([said(on('new'), { compute: 'old' })], lists)).toEqual(
      new Map([
        ['new', [heard('a')]],
        ['old', [heard('a', { here: false, own: true })]],
      ]),
    );
  });

  it('tells the publisher of a server that is on no host, and a nova-compute that speaks of no server', () => {
    expect(heardByHost([said(on(null)), said(null, { compute: 'c' })], [])).toEqual(
      new Map([
        ['conductor', [heard('a', { here: false })]],
        ['c', [heard(null, { here: false, own: true })]],
      ]),
    );
  });

  it('a deleted server is nowhere', () => {
    expect(heardByHost([said(on('h', true))], [list('h', 'a')])).toEqual(
      new Map([['h', [heard('a', { here: false, deleted: true })]]]),
    );
  });

  it('reads each list once, however many notifications there are', () => {
    let reads = 0;
    const [host, { report, sequence }] = list('h', 'a');
    const counted: StoredReport = {
      sequence,
      report: {
        ...report,
        get instances() {
          reads++;
          return report.instances;
        },
      },
    };
    const batch = Array.from({ length: 50 }, () => said(on('h')));
    expect(heardByHost(batch, [[host, counted]]).get('h')).toHaveLength(50);
    expect(reads).toBe(1);
  });
});
