import { type Played, serve } from '@kronos/http/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkRegions, judgeRegion } from './regions.ts';

/** Answers as a ledger below `/kronos`, and as something else at any other path. */
const ANSWERS: Readonly<Record<string, object>> = {
  '/kronos/api/v1/fleet': { aggregates: [{ standing: 'balanced', ratio: 0.4, hosts: 3, vms: 1, movesInFlight: 0 }] },
  '/kronos/api/v1/alarms': { alarms: [] },
};
let server: Played;
let base = '';
beforeAll(async () => {
  server = await serve(({ path }, response) => {
    const answer = ANSWERS[path];
    response.writeHead(answer === undefined ? 401 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { error: 'log in first' }));
  });
  base = server.url;
});
afterAll(() => server.close());

const checked = (...regions: string[]) =>
  checkRegions({ console: { regions, cafile: null } } as unknown as Parameters<typeof checkRegions>[0]);

describe('the regions of the console', () => {
  it('answer as ledgers, or it is said which does not, why, and what to do', async () => {
    expect(await checked(`west=${base}/kronos`, `east=${base}`)).toEqual([
      {
        code: 'region',
        what: 'region west',
        state: 'ok',
        text: `answers at ${base}/kronos: 1 aggregate, 3 hosts, 1 VM`,
        remedy: null,
        detail: { aggregates: 1, hosts: 3, vms: 1 },
      },
      {
        code: 'region',
        what: 'region east',
        state: 'warning',
        text: expect.stringMatching(
          /^the console shows nothing of it: it answers 401 to \/api\/v1\/(fleet|alarms): log in first$/,
        ),
        remedy: expect.stringContaining('[console] regions'),
        detail: {},
      },
    ]);
    expect(await checked()).toEqual([]);
  });

  it('are warned about without TLS, unless they are on this machine', () => {
    const seen = { aggregates: 2, hosts: 3, vms: 4, moves: 0, alarms: 0, ratio: null, standings: {} };
    const of = (url: string) => judgeRegion({ name: 'west', url, seen, problem: null });
    expect(of('https://kronos.west.example.org').state).toBe('ok');
    expect(of('http://[::1]:9784').state).toBe('ok');
    expect(of('http://ledger.west.example.org:9784')).toMatchObject({
      state: 'warning',
      text: 'answers at http://ledger.west.example.org:9784: 2 aggregates, 3 hosts, 4 VMs; without TLS, so others on the way can read and change it',
      remedy: expect.stringContaining('https://'),
    });
  });
});
