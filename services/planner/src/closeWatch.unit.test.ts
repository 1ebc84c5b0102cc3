import { manualClock } from '@kronos/clock/testing';
import { testLog } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { closeWatch } from './closeWatch.ts';

function watched(more: { readonly force?: true }) {
  const log = testLog();
  log.configured();
  const task = `${log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }])}-s1`;
  log.started({ task });
  log.closed(task, 'ada', more);
  const clock = manualClock(log.nowMs);
  const wrong = { byMs: 0 };
  const own = { ...clock, now: () => clock.now() + wrong.byMs };
  const looks: number[] = [];
  const at = () => ({ state: log.state(), sequence: 0, expectedOn: () => 0 });
  const look = () => looks.push(clock.now() - log.nowMs);
  return {
    log,
    clock,
    wrong,
    looks,
    closes: closeWatch({ clock: own, aggregates: [log.state().aggregate] }, { at }, look),
  };
}

it('a task that was closed with force is looked at again a minute after the close, also by a planner that starts meanwhile', () => {
  const { clock, looks, closes } = watched({ force: true });
  clock.advance(40_000);
  closes.begin();
  closes.begin();
  clock.advance(20_000);
  expect(looks).toEqual([]);
  clock.advance(20_000);
  expect(looks).toEqual([60_100]);
});

it('by a clock that was wrong when it was closed, it is looked at again once the clock is right', () => {
  const { clock, wrong, looks, closes } = watched({ force: true });
  wrong.byMs = -600_000;
  closes.begin();
  wrong.byMs = 0;
  closes.begin();
  clock.advance(60_100);
  expect(looks).toEqual([60_100]);
});

it('one that was closed without force, or that has ended, is not; nor is any once the planner stops', () => {
  const plain = watched({});
  plain.closes.begin();
  const ended = watched({ force: true });
  ended.log.failed({ task: [...ended.log.state().tasks.keys()][0] ?? '', errorType: 'Cancelled' });
  ended.closes.begin();
  const stopped = watched({ force: true });
  stopped.closes.begin();
  stopped.closes.stop();
  for (const { clock, looks } of [plain, ended, stopped]) {
    clock.advance(600_000);
    expect(looks).toEqual([]);
  }
});
