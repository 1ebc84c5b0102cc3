import { describe, expect, it } from 'vitest';
import { type TestLog, testLog } from '../testing/index.ts';

const move = (log: TestLog, from: string, to: string): string => `${log.released([{ serverId: 'vm1', from, to }])}-s1`;
const begun = (log: TestLog, from: string, to: string): { readonly task: string } => {
  const task = move(log, from, to);
  log.started({ task });
  return { task };
};
const ownOf = (log: TestLog) => log.state().ownMoves.get('vm1');

describe('the last move of a server', () => {
  it('is remembered with its hosts and the id of its migration', () => {
    const log = testLog();
    log.configured();
    const done = log.completed(begun(log, 'h1', 'h2'));
    expect(ownOf(log)).toMatchObject({ from: 'h1', to: 'h2', migrationId: done.data.nova?.migrationId });
  });

  it.each(['h1', 'h3'])(
    'went to its destination, even if somebody else has moved the server on to %s since',
    (host) => {
      const log = testLog();
      log.configured();
      log.completed({ ...begun(log, 'h1', 'h2'), host });
      expect(ownOf(log)).toMatchObject({ from: 'h1', to: 'h2' });
    },
  );

  it('does not make a move of others out of the migration of a later attempt that Kronos gave up', () => {
    const log = testLog();
    log.configured();
    log.completed(begun(log, 'h1', 'h2'));
    log.pass(3600);
    const { task } = begun(log, 'h2', 'h3');
    log.observed({ task, migrationId: 4711 });
    log.failed({ task });
    expect(ownOf(log)).toMatchObject({ from: 'h1', to: 'h2', migrationId: 4711 });
  });
});
