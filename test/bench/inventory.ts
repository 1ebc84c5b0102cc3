/**
 * What it costs to know the servers of the cloud in each cycle, in each `[inventory] mode`, side by side against one simulated
 * cloud over HTTP: calls, bytes of the answers, and seconds per cycle of one minute. Before each cycle a share of the VMs
 * changes (metadata is set). The kept list is compared with Nova's every 5 cycles; the measured cycles
 * are whole intervals, so the comparison is in the figures. In `notifications`, every nova-compute was heard before the first
 * cycle and each change is notified; the hosts, which every cycle reads anyway, are in the figures. Seconds are of this machine, the cloud's own work included. Prints
 * JSON; exits with 1 where the kept list differs from Nova's in any cycle, or takes more than 5 % of the bytes of `api`.
 *
 *   npm run bench:inventory [hosts, default 113] [VMs, default 15769] [cycles, default 10] [share that changes, default 0.01]
 */
import { isDeepStrictEqual } from 'node:util';
import { byText } from '@kronos/contracts';
import { everyServer, type KeptServers, keepServers, type ServerSource } from '@kronos/observation';
import { createNova, createSession, type Server } from '@kronos/openstack';
import { generate, manualClock, startSim } from '@kronos/simcloud';

const [hosts = 113, vms = 15_769, cycles = 10, share = 0.01] = process.argv.slice(2).map(Number);
const INTERVAL_MS = 60_000;
const SYNC_MS = 300_000;
const MOST_OF_API = 0.05;
const signal = new AbortController().signal;

const clock = manualClock(Date.UTC(2026, 0, 1));
const sim = await startSim({ scenario: generate({ hosts, vms }), clock });
const spent = { calls: 0, bytes: 0 };
const session = createSession({
  auth: {
    authUrl: sim.urls.identity,
    username: 'admin',
    password: 'secret',
    projectName: 'admin',
    userDomainId: 'default',
    projectDomainId: 'default',
  },
  async transport({ method, url, headers, body, signal: ended }) {
    const answer = await fetch(url, { method, headers, body, signal: ended });
    const text = await answer.text();
    spent.calls++;
    spent.bytes += Buffer.byteLength(text);
    return { statusCode: answer.status, headers: Object.fromEntries(answer.headers), body: { text: async () => text } };
  },
});
const nova = createNova(session);
const time = { now: () => clock.now(), monotonic: () => clock.now() };
let resyncs = 0;
const keep = (mode: 'changes' | 'notifications'): KeptServers =>
  keepServers({
    nova,
    clock: time,
    mode,
    optOut: ['kronos:exclude'],
    syncIntervalMs: SYNC_MS,
    maxClockSkewMs: 5_000,
    clockWrong: () => false,
    concurrency: 8,
    onResync: () => resyncs++,
  });
const notified = keep('notifications');
const sources: Readonly<Record<string, ServerSource>> = {
  api: everyServer(nova, time),
  changes: keep('changes'),
  notifications: notified,
};
const everyHost = async (): Promise<string[]> => (await nova.listHypervisors()).map((one) => one.service.host);

const ids = [...sim.cloud.servers.keys()];
let turn = 0;
function change(): void {
  for (let i = 0; i < Math.round(vms * share); i++, turn++) {
    const id = ids[(turn * 7919) % ids.length] ?? '';
    sim.cloud.setServer(clock.now(), id, { metadata: { turn: String(turn) } });
    notified.inventory.notified({ id, deleted: false, receivedMs: clock.now() });
  }
}
const sorted = (servers: readonly Server[]): Server[] => [...servers].sort((a, b) => byText(a.id, b.id));

for (const host of await everyHost()) notified.inventory.heard(host, clock.now());
for (const source of Object.values(sources)) await source.read(signal, everyHost);
const figures = new Map(Object.keys(sources).map((mode) => [mode, { calls: 0, bytes: 0, seconds: 0 }]));
let differing = 0;
for (let cycle = 0; cycle < cycles; cycle++) {
  clock.advance(INTERVAL_MS);
  change();
  const lists: Server[][] = [];
  for (const [mode, source] of Object.entries(sources)) {
    const before = { ...spent };
    const from = performance.now();
    lists.push(sorted(await source.read(signal, everyHost)));
    const figure = figures.get(mode);
    if (figure === undefined) continue;
    figure.seconds += (performance.now() - from) / 1000;
    figure.calls += spent.calls - before.calls;
    figure.bytes += spent.bytes - before.bytes;
  }
  if (lists.some((list) => !isDeepStrictEqual(lists[0], list))) differing++;
}
await session.close();
await sim.close();

const perCycle = Object.fromEntries(
  [...figures].map(([mode, { calls, bytes, seconds }]) => [
    mode,
    { calls: calls / cycles, bytes: Math.round(bytes / cycles), seconds: Number((seconds / cycles).toFixed(3)) },
  ]),
);
const ofApi = (mode: string): number =>
  Number(((figures.get(mode)?.bytes ?? 0) / (figures.get('api')?.bytes ?? 1)).toFixed(4));
const bytesOfApi = { changes: ofApi('changes'), notifications: ofApi('notifications') };
const passed = differing === 0 && Object.values(bytesOfApi).every((part) => part <= MOST_OF_API);
process.stdout.write(
  `${JSON.stringify({ hosts, vms, cycles, share, perCycle, bytesOfApi, limit: MOST_OF_API, resyncs, differing, passed }, null, 2)}\n`,
);
process.exitCode = passed ? 0 : 1;
