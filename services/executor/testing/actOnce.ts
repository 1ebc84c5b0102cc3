/**
 * A process that asks Nova for one act, for tests that stop it while its connection is being made. It prints `ready` once it
 * knows all that it needs, acts on the first line of input, and prints what it knows of the act as one line of JSON. On a
 * second line it stops itself (SIGSTOP) in a timer: what the event loop does next, once it goes on, is to look at its sockets.
 * However soon it continues, its clocks are past the window then, as if it had been stopped for that time.
 *
 * node actOnce.ts AUTH_URL COMPUTE_URL SERVER_ID post|abort WINDOW_MS
 */
import { once } from 'node:events';
import { systemClock } from '@kronos/clock';
import { createNova, createSession } from '@kronos/openstack';
import { actWithin, postOnce } from '../src/act.ts';

const [authUrl = '', compute = '', serverId = '', what = '', windowMs = ''] = process.argv.slice(2);
const session = createSession({
  auth: {
    authType: 'password',
    authUrl,
    username: 'admin',
    password: 'secret',
    projectName: 'admin',
    userDomainId: 'default',
    projectDomainId: 'default',
    tls: { insecure: true },
    endpointOverrides: { compute },
  },
});
const nova = createNova(session);
await nova.versions();
process.stdout.write('ready\n');
await once(process.stdin, 'data');
let stoppedMs = 0;
const read: typeof systemClock.read = () => {
  const { mono, wall } = systemClock.read();
  return { mono: mono + stoppedMs, wall: wall + stoppedMs };
};
const clock = { ...systemClock, read, now: () => read().wall, monotonic: () => read().mono };
process.stdin.once('data', () =>
  setTimeout(() => {
    process.kill(process.pid, 'SIGSTOP');
    stoppedMs = Number(windowMs) + 1;
  }),
);
const by = clock.read().mono + Number(windowMs);
const window = { by, clock, held: () => true, lost: new AbortController().signal };
const answer = await actWithin<object>(window, (options) =>
  what === 'post'
    ? postOnce(nova, { serverId, host: 'h2', force: false }, options)
    : nova.abortMigration({ serverId, migrationId: 1 }, options),
).catch((error: Error) => ({ failed: error.message }));
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.stdin.destroy();
await session.close();
