import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogEvent, LogEventOf, LogEventType, ServiceName } from '@kronos/contracts';
import type { MigrationRecord, Sim } from '@kronos/simcloud';
import type { DemoInstallation } from '../../libs/cli/src/demo/installation.ts';
import { type DemoStage, openStage, type StageOptions } from '../../libs/cli/src/demo/stage.ts';

export type { ServiceName };

/** The events of an installation, for tests that wait for one. */
export type Watch = {
  /** Every event so far, in order. */
  readonly events: readonly LogEvent[];
  /** Why messages of the log could not be read. */
  readonly problems: readonly string[];
  /** Waits until the events fulfil a condition; fails after `limitMs`, with the services' last words. */
  readonly until: (
    what: string,
    condition: (events: readonly LogEvent[]) => boolean,
    limitMs?: number,
  ) => Promise<void>;
};

/** Follows the log of an installation from its first event. */
export function watch(installation: Pick<DemoInstallation, 'log' | 'directory'>): Watch {
  const events: LogEvent[] = [];
  const problems: string[] = [];
  const waiting = new Set<() => void>();
  const follow = async () => {
    const families = ['plans', 'results', 'controls'] as const;
    for await (const { message, problem } of installation.log.tail({ families, since: 'all' })) {
      if (problem === undefined) events.push(message as LogEvent);
      else problems.push(problem);
      for (const look of waiting) look();
    }
  };
  follow().catch(() => {});
  return {
    events,
    problems,
    async until(what, condition, limitMs = 600_000) {
      const met = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => finish(false), limitMs);
        const look = () => {
          if (condition(events)) finish(true);
        };
        const finish = (ok: boolean) => {
          clearTimeout(timer);
          waiting.delete(look);
          resolve(ok);
        };
        waiting.add(look);
        look();
      });
      if (met) return;
      const words = await lastWords(installation);
      throw new Error(`waited ${limitMs} ms for ${what}; last events:\n${lastEvents(events)}\n${words}`);
    },
  };
}

/** The demo's cloud and installation, with the events of its log. */
export type World = Watch & {
  readonly stage: DemoStage;
  /** All migrations of the cloud. */
  readonly migrations: () => Promise<readonly MigrationRecord[]>;
  readonly close: () => Promise<void>;
};

/**
 * Overrides of options for a planner that searches little. With the default a decision about the demo's cloud takes a second of
 * CPU, which is half of what a whole run takes. A short search may find no plan at all. That does not last while the readings of the
 * cloud change; a test whose readings stay the same needs the default.
 */
export const SHORT_SEARCH = { OS_ENGINE__SEARCH_WORK_LIMIT: '600000' };

export async function openWorld({
  seed = 7,
  speed = 10,
  env = {},
}: {
  seed?: number;
  speed?: number;
  env?: NonNullable<StageOptions['env']>;
} = {}): Promise<World> {
  const own = typeof env === 'function' ? env : (of: ServiceName | 'provision') => (of === 'provision' ? {} : env);
  const stage = await openStage({
    seed,
    speed,
    // A planner of two threads loads its modules twice. The test of `kronos demo` has the default.
    env: (of) => ({ ...SHORT_SEARCH, OS_ENGINE__SEARCH_THREADS: '1', ...own(of) }),
    say: () => {},
    onExit: () => {},
  });
  return {
    ...watch(stage),
    stage,
    migrations: () => migrationsOf(stage.cloudUrl),
    close: () => stage.close(),
  };
}

/** All migrations of a simulated cloud, by the address of its administration. */
export async function migrationsOf(cloudUrl: string): Promise<readonly MigrationRecord[]> {
  const answer = await fetch(`${cloudUrl}/migrations`);
  return ((await answer.json()) as { migrations: MigrationRecord[] }).migrations;
}

const lastEvents = (events: readonly LogEvent[]): string =>
  events
    .slice(-5)
    .map((e) => JSON.stringify(e).slice(0, 300))
    .join('\n');

async function lastWords(installation: Pick<DemoInstallation, 'directory'>): Promise<string> {
  const words = ['scorer', 'planner', 'executor', 'ledger'].map(async (service) => {
    const text = await readFile(join(installation.directory, 'logs', `${service}.log`), 'utf8').catch(() => '');
    return `${service}: ${text.trimEnd().split('\n').slice(-3).join('\n  ')}`;
  });
  return (await Promise.all(words)).join('\n');
}

/**
 * kronos.conf for a simulated cloud, without balancing: Kronos plans only the moves that people ask for.
 *
 * @param sections further sections; every line ends with a newline
 */
export const configOfOwnCloud = (
  { urls }: Sim,
  { natsUrl, policiesFile }: { readonly natsUrl: string; readonly policiesFile: string },
  aggregates: string,
  sections = '',
): string => `[engine]
aggregates = ${aggregates}
policies_file = ${policiesFile}
dry_run = false
balance = false
evaluation_interval = 3
search_work_limit = 5000000
[executor]
poll_interval = 0.25
${sections}[nova]
auth_url = ${urls.identity}
username = admin
password = secret
project_name = admin
user_domain_id = default
project_domain_id = default
[nats]
servers = ${natsUrl}
ack_wait = 4
[http]
scorer_port = 0
planner_port = 0
executor_port = 0
ledger_port = 0
`;

/** The events of one type, oldest first. */
export const ofType = <T extends LogEventType>(events: readonly LogEvent[], type: T): LogEventOf<T>[] =>
  events.filter((event): event is LogEventOf<T> => event.type === type);

/** Tasks with a final result. */
export const ended = (events: readonly LogEvent[]): Set<string> =>
  new Set(
    events.flatMap((e) =>
      e.type === 'migration.completed' ||
      e.type === 'migration.skipped' ||
      (e.type === 'migration.failed' && !e.data.retryPending)
        ? [e.data.taskId]
        : [],
    ),
  );

/** Released tasks. */
export const released = (events: readonly LogEvent[]): string[] =>
  events.flatMap((e) =>
    e.type === 'cycle.decided' && e.data.release === 'released' ? (e.data.plan?.steps.map((s) => s.taskId) ?? []) : [],
  );

/**
 * Something was done, nothing is in flight, and the last two decisions found the aggregate balanced. Other quiet decisions do
 * not count: while VMs cool down no legal move may be left, and more moves follow.
 */
export function settled(events: readonly LogEvent[]): boolean {
  const tasks = released(events);
  const over = ended(events);
  if (tasks.length === 0 || tasks.some((t) => !over.has(t))) return false;
  const decisions = events.filter((e) => e.type === 'cycle.decided').slice(-2);
  return decisions.length === 2 && decisions.every((e) => e.data.reason.code === 'balanced');
}
