import { streamNames } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { pausedEvent } from '../../testing/messages.ts';
import { simulatedBench } from '../../testing/simulated/bench.ts';
import { StreamUnavailable } from '../wire/errors.ts';
import { append } from './append.ts';
import { View } from './view.ts';

const LOG = streamNames.log;

it('a copy without a leader that lacks the newest event is not taken for another log', async () => {
  const bench = await simulatedBench();
  for (const id of ['e1', 'e2']) await bench.settled(append(bench.link, LOG, pausedEvent(id), {}));
  const view = await bench.settled(
    View.open(bench.link, { initial: 0, evolve: (count) => count + 1, snapshot: (count) => count }),
  );
  const stream = bench.server.stream(LOG);
  if (stream === undefined) throw new Error('there is no log');
  stream.follower = {
    last: 1,
    replicas: ['n3', 'n1', 'n2'].map((name) => ({ name, current: name === 'n1' })),
  };
  const error = await bench.settled(view.refresh().catch((reason: unknown) => reason));
  expect(error).toBeInstanceOf(StreamUnavailable);
  expect(error).toMatchObject({
    message: `stream ${LOG}: its copies have no leader: 2 of 3 are needed, and those on n2, n3 do not take part`,
  });
  stream.follower = null;
  expect(await bench.settled(view.refresh())).toMatchObject({ state: 2, sequence: 2 });
  await view.close();
  await bench.close();
});
