import { systemClock } from '@kronos/clock';
import { defaultConfig } from '@kronos/config';
import { type Play, serve } from '@kronos/http/testing';
import { expect, it, onTestFinished } from 'vitest';
import { openRegions } from './regions.ts';

/** A busy machine takes as long as it needs. */
const unlimited = { ...systemClock, after: () => () => {} };

/** Reads a region whose ledger answers as given. */
async function seenOf(play: Play) {
  const { url, seen, close } = await serve(play);
  onTestFinished(close);
  const regions = openRegions({ console: { ...defaultConfig.console, regions: [`west=${url}`] } }, unlimited);
  onTestFinished(() => regions.close());
  const [report] = await regions.read();
  return { report, seen };
}

it('a region that talks too much is cut short', async () => {
  const { report } = await seenOf((_, response) => {
    response.writeHead(403).end(JSON.stringify({ error: 'no'.repeat(100_000) }));
  });
  expect(report).toMatchObject({ seen: null, problem: expect.stringMatching(/^it answers 403 to .*: (no)+\.\.\.$/) });
  expect(report?.problem?.length).toBeLessThan(400);
});

it('an answer that no fleet is as large as is not read', async () => {
  const { report } = await seenOf((_, response) => {
    response.writeHead(200).end(`{"aggregates":[],"alarms":[],"rest":"${' '.repeat(9 * 1024 * 1024)}"}`);
  });
  expect(report).toMatchObject({ seen: null, problem: expect.stringContaining('the answer is larger than') });
});

it('a region is asked without credentials, and no redirect is followed', async () => {
  const { report, seen } = await seenOf((_, response) => {
    response.writeHead(302, { location: '/login' }).end();
  });
  expect(report).toMatchObject({ seen: null, problem: expect.stringMatching(/^it answers 302 to /) });
  for (const { path, headers } of seen) {
    expect(path).toMatch(/^\/api\/v1\/(fleet|alarms)$/);
    expect(Object.keys(headers)).not.toContain('authorization');
  }
});
