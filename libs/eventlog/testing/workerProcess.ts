/** A worker in a process of its own, for tests that stop and kill it. Prints one JSON line per thing that happens. */
import { connectEventLog } from '../src/index.ts';

const [url = '', aggregate = 'gpu', ackWaitMs = '1000'] = process.argv.slice(2);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

const log = await connectEventLog({ servers: [url], name: 'process' });
log.tasks({
  aggregates: [aggregate],
  concurrency: 1,
  ackWaitMs: Number(ackWaitMs),
  handle: async ({ sequence, deliveries, lost, stopping }) => {
    say({ what: 'taken', sequence, deliveries });
    lost.addEventListener('abort', () => say({ what: 'lost', sequence, deliveries }));
    await new Promise((resolve) => {
      lost.addEventListener('abort', resolve);
      stopping.addEventListener('abort', resolve);
    });
    // Whatever it answers now must not be sent when the delivery is lost.
    return stopping.aborted ? { kind: 'handOver' } : { kind: 'done' };
  },
});
say({ what: 'ready' });
process.once('SIGTERM', () => {
  void log.close().then(() => {
    say({ what: 'closed' });
    process.exit(0);
  });
});
