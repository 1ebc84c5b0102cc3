/** The executor's reads while a server moves between cells, and its checks of the guest. */
import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import type { Verify } from '@kronos/config';
import type { Nova, Server } from '@kronos/openstack';
import { NEWEST } from '../preflight.ts';
import { serverOrGone } from '../serverOrGone.ts';
import type { CellLook, CellServer, Task } from '../taskFacts.ts';

/** One look: the server's newest migrations, the server, and when it waits in VERIFY_RESIZE what its checks need. */
export async function lookCell(
  nova: Nova,
  task: Pick<Task, 'serverId' | 'cell'>,
  verify: Verify | null,
  signal: AbortSignal,
): Promise<CellLook> {
  const migrations = await nova.listMigrations({ serverId: task.serverId, limit: NEWEST }, { signal });
  const server = await serverOrGone(nova, task.serverId, signal);
  if (server === 'gone') return { migrations, server, targetHosts: null, probe: null };
  if (server.cellDown) return { migrations, server: null, targetHosts: null, probe: null };
  if (server.status !== 'VERIFY_RESIZE') return { migrations, server: factsOf(server), targetHosts: null, probe: null };
  const aggregates = await nova.listAggregates({ signal });
  const target = aggregates.find(({ name }) => name === task.cell?.target);
  return {
    migrations,
    server: factsOf(server),
    targetHosts: target?.hosts ?? [],
    probe: verify === null ? null : await probe(verify, server, signal),
  };
}

function factsOf(server: Server): CellServer {
  const { host, status, vmState, taskState, powerState, flavor, addresses, volumeIds } = server;
  return { host, status, vmState, taskState, powerState, flavor: flavor?.name ?? null, addresses, volumes: volumeIds };
}

/** Limit of one check of a guest. */
const PROBE_MS = 10_000;

type Probe = NonNullable<CellLook['probe']>;

/** Checks the guest of a server; null: nothing is to be checked. */
async function probe(
  verify: Verify,
  server: Pick<Server, 'id' | 'host' | 'addresses'>,
  signal: AbortSignal,
): Promise<Probe | null> {
  switch (verify.kind) {
    case 'none':
      return null;
    case 'tcp':
      return probeTcp(verify.port, server.addresses, signal);
    case 'command':
      return probeCommand(verify.command, server, signal);
  }
}

/** One of the addresses must accept a connection. */
async function probeTcp(port: number, addresses: readonly string[], signal: AbortSignal): Promise<Probe> {
  if (addresses.length === 0) return { ok: false, text: 'the server has no address' };
  const tries = addresses.map((address) => connects(address, port, signal));
  const problems: string[] = [];
  for (const [i, tried] of tries.entries()) {
    const problem = await tried;
    if (problem === null) return { ok: true, text: `${addresses[i]} accepts connections on port ${port}` };
    problems.push(`${addresses[i]}: ${problem}`);
  }
  return { ok: false, text: `no connection to port ${port}: ${problems.join('; ')}` };
}

/** Why no connection could be made; null: one was. */
const connects = (host: string, port: number, signal: AbortSignal): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, signal, timeout: PROBE_MS });
    const end = (problem: string | null): void => {
      socket.destroy();
      resolve(problem);
    };
    socket.once('connect', () => end(null));
    socket.once('timeout', () => end(`no answer within ${PROBE_MS / 1000} s`));
    socket.once('error', (error) => end(error.message));
  });

/** The command of the configuration, by a shell; the log never names one. */
const probeCommand = (
  command: string,
  { id, host, addresses }: Pick<Server, 'id' | 'host' | 'addresses'>,
  signal: AbortSignal,
): Promise<Probe> =>
  new Promise((resolve) => {
    const env = {
      PATH: process.env.PATH,
      KRONOS_SERVER: id,
      KRONOS_HOST: host ?? '',
      KRONOS_ADDRESSES: addresses.join(' '),
    };
    execFile('/bin/sh', ['-c', command], { env, signal, timeout: PROBE_MS }, (error) => {
      if (error === null) resolve({ ok: true, text: 'the check command succeeded' });
      // Its output may hold secrets of the guest.
      else resolve({ ok: false, text: `the check command ended with ${error.code ?? error.signal ?? 'an error'}` });
    });
  });
