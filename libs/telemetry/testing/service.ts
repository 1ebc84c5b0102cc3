/** A service for service.e2e.test.ts: how it behaves is the first argument. */
import { setTimeout as after } from 'node:timers/promises';
import { type RunningService, runService, type ServiceContext } from '../src/service.ts';

class Refused extends Error {
  readonly code = 'KRONOS_TEST_REFUSED';
  readonly remedy = 'Do something else.';
}

const behaviours: Record<string, (context: ServiceContext) => Promise<RunningService>> = {
  works: async ({ log }) => ({
    stop: async () => {
      log.info('handing over');
      await after(50);
      log.info('handed over');
    },
  }),
  refuses: () => Promise.reject(new Refused('cannot reach hunter2-password at nats://u:pw@h')),
  breaks: () => Promise.reject(new TypeError('a defect')),
  throwsLater: async () => {
    setTimeout(() => {
      throw new TypeError('thrown later');
    }, 20);
    return { stop: async () => {} };
  },
  rejectsLater: async () => {
    setTimeout(() => void Promise.reject(new TypeError('rejected later')), 20);
    return { stop: async () => {} };
  },
  failsLater: async ({ log }) => ({
    done: after(20).then(() => Promise.reject(new Refused('lost its log'))),
    stop: async () => log.info('handed over'),
  }),
  finishes: async ({ log }) => ({ done: after(20), stop: async () => log.info('handed over') }),
  hangsOnStop: async () => ({ stop: () => new Promise(() => {}) }),
  startsForever: ({ log, stopping }) => {
    stopping.addEventListener('abort', () => log.info('told to stop'));
    // A timer, as a connection would, keeps the process alive.
    return after(60_000, { stop: async () => {} });
  },
  stopsWhileStarting: async ({ stopping }) => {
    await after(60_000, null, { signal: stopping });
    return { stop: async () => {} };
  },
};

const [behaviour = '', file] = process.argv.slice(2);
const start = behaviours[behaviour];
if (start === undefined) throw new Error(`no behaviour ${behaviour}`);
// A timer keeps the process alive as a connection would.
setInterval(() => {}, 1000);
process.exit(
  await runService(
    { name: 'planner', version: '1.2.3', start },
    {
      file,
      env: process.env,
      stopTimeoutMs: 500,
      renamed: [{ from: 'engine.pause_after_move', to: 'engine.cooldown', since: '1.2.0' }],
    },
  ),
);
