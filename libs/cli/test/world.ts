import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultStorageLimits, type StoredEvent, serviceNames } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { rawEvents, reportedEvent, startNatsServer } from '@kronos/eventlog/testing';
import { type Operation, type OperationOptions, operate } from '@kronos/replay/testing';
import { runProgram } from '../src/program.ts';
import type { Shell } from '../src/shell.ts';

export type Said = { readonly status: number; readonly out: string; readonly err: string };

export type ShellOptions = {
  readonly env?: Readonly<Record<string, string>>;
  /** What its clock shows, for as long as it runs, or a clock; default: the end of the test histories. */
  readonly nowMs?: number | (() => number);
  readonly columns?: number;
  readonly live?: boolean;
  readonly interrupted?: AbortSignal;
  /** The person's answer; absent: nobody can answer. */
  readonly answer?: string;
  /** Default: ids of no other shell. */
  readonly newId?: () => string;
};

/** Ids that are counted from 1, so that an output that shows one is always the same. */
function countedIds(): () => string {
  let ids = 0;
  return () => {
    ids += 1;
    return `00000000-0000-4000-a000-${String(ids).padStart(12, '0')}`;
  };
}

/** A shell with a clock that stands still unless one is given. */
export function testShell(options: ShellOptions = {}): { shell: Shell; said: () => Omit<Said, 'status'> } {
  let out = '';
  let err = '';
  const shell: Shell = {
    terminal: {
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      steer: (stream, sequence) => {
        if (stream === 'out') out += sequence;
        else err += sequence;
      },
      colour: false,
      columns: options.columns ?? 100,
      live: options.live ?? false,
    },
    env: options.env ?? {},
    now: () => {
      const { nowMs = Date.parse('2026-01-05T01:00:00Z') } = options;
      return typeof nowMs === 'function' ? nowMs() : nowMs;
    },
    newId: options.newId ?? randomUUID,
    person: 'ada@desk',
    interrupted: () => options.interrupted ?? new AbortController().signal,
    ask:
      options.answer === undefined
        ? null
        : async (question) => {
            err += question;
            return options.answer ?? '';
          },
  };
  return { shell, said: () => ({ out, err }) };
}

/** Runs one command line as a person would. */
export async function kronos(args: readonly string[], options: ShellOptions = {}): Promise<Said> {
  const { shell, said } = testShell(options);
  const status = await runProgram(args, shell);
  return { status, ...said() };
}

export type CliWorld = {
  readonly directory: string;
  readonly natsUrl: string;
  readonly operation: Operation;
  readonly log: EventLog;
  /** Runs one command line on this world, at the end of what happened in it. */
  readonly kronos: (line: string | readonly string[], options?: ShellOptions) => Promise<Said>;
  readonly close: () => Promise<void>;
};

/**
 * A nats-server with an operation on it, and a kronos.conf that names it.
 *
 * @param after what happened after the operation
 */
export async function openCliWorld(
  options: OperationOptions,
  conf = '',
  after: (endMs: number) => readonly StoredEvent[] = () => [],
): Promise<CliWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'kronos-cli-'));
  const server = await startNatsServer();
  const operation = operate(options);
  const aggregates = options.aggregates ?? ['gpu', 'general', 'web eu/1'];
  const log = await connectEventLog({ servers: [server.url], name: 'test' });
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates });
  const events = [...operation.events, ...after(operation.events.at(-1)?.storedAt ?? 0)];
  await log.restore(rawEvents(events));
  for (const snapshot of operation.snapshots)
    await log.putSnapshot(snapshot, { by: { service: 'scorer', instance: 's', version: '0.1.0' }, causationId: null });
  const file = join(directory, 'kronos.conf');
  await writeFile(
    file,
    `[engine]\naggregates = ${aggregates.join(', ')}\nmax_clock_skew = 1000000000\n[nats]\nservers = ${server.url}\n[http]\nscorer_port = 0\nplanner_port = 0\nexecutor_port = 0\nledger_port = 0\n${conf}`,
  );
  const newId = countedIds();
  const nowMs = (events.at(-1)?.storedAt ?? 0) + 5000;
  const time = new Date(nowMs).toISOString();
  for (const service of serviceNames)
    await log.append(reportedEvent(service, `${service}-1`, time, { aggregates: [...aggregates] }));
  return {
    directory,
    natsUrl: server.url,
    operation,
    log,
    kronos: (line, more = {}) =>
      kronos(typeof line === 'string' ? line.split(' ') : line, {
        nowMs,
        newId,
        ...more,
        env: { KRONOS_CONFIG: file, ...more.env },
      }),
    async close() {
      await log.close();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
