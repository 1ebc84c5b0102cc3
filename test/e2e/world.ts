import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogEvent } from '@kronos/contracts';
import type { MigrationRecord } from '@kronos/simcloud';
import { type DemoService, openStage, type Stage } from '../../libs/cli/src/demo/stage.ts';

export type { DemoService, Stage };

/** A demo's world whose log is followed, for tests that wait for what happens in it. */
export type World = {
  readonly stage: Stage;
  /** Every event so far, in order. */
  readonly events: readonly LogEvent[];
  /** Waits until the events fulfil a condition; fails after `limitMs`, with the services' last words. */
  readonly until: (
    what: string,
    condition: (events: readonly LogEvent[]) => boolean,
    limitMs?: number,
  ) => Promise<void>;
  /** Every migration that the cloud has seen. */
  readonly migrations: () => Promise<readonly MigrationRecord[]>;
  readonly close: () => Promise<void>;
};

export async function openWorld({
  seed = 7,
  speed = 10,
  env = {},
}: {
  seed?: number;
  speed?: number;
  env?: Readonly<Record<string, string>>;
} = {}): Promise<World> {
  const stage = await openStage({ seed, speed, env, say: () => {}, onExit: () => {} });
  const events: LogEvent[] = [];
  const waiting = new Set<() => void>();
  const follow = async () => {
    for await (const { message, problem } of stage.log.tail({
      families: ['plans', 'results', 'controls'],
      since: 'all',
    })) {
      if (problem === undefined) events.push(message as LogEvent);
      for (const look of waiting) look();
    }
  };
  follow().catch(() => {});
  return {
    stage,
    events,
    async until(what, condition, limitMs = 60_000) {
      if (condition(events)) return;
      let look = () => {};
      const met = new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(false), limitMs);
        look = () => {
          if (!condition(events)) return;
          clearTimeout(timer);
          resolve(true);
        };
        waiting.add(look);
      });
      const ok = await met;
      waiting.delete(look);
      if (!ok)
        throw new Error(
          `waited ${limitMs} ms for ${what}; last events: ${lastEvents(events)}\n${await lastWords(stage)}`,
        );
    },
    async migrations() {
      const answer = await fetch(`${stage.cloudUrl}/migrations`);
      return ((await answer.json()) as { migrations: MigrationRecord[] }).migrations;
    },
    close: stage.close,
  };
}

const lastEvents = (events: readonly LogEvent[]): string =>
  events
    .slice(-5)
    .map((e) => JSON.stringify(e).slice(0, 300))
    .join('\n');

async function lastWords(stage: Stage): Promise<string> {
  const words = ['scorer', 'planner', 'executor', 'ledger'].map(async (service) => {
    const text = await readFile(join(stage.directory, 'logs', `${service}.log`), 'utf8').catch(() => '');
    return `${service}: ${text.trimEnd().split('\n').slice(-3).join('\n  ')}`;
  });
  return (await Promise.all(words)).join('\n');
}

/** Tasks that ended for good. */
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

/** Tasks that were released. */
export const released = (events: readonly LogEvent[]): string[] =>
  events.flatMap((e) =>
    e.type === 'cycle.decided' && e.data.release === 'released' ? (e.data.plan?.steps.map((s) => s.taskId) ?? []) : [],
  );

/** Nothing is in flight, and the last two decisions found nothing to do after something was done. */
export function settled(events: readonly LogEvent[]): boolean {
  const tasks = released(events);
  const over = ended(events);
  if (tasks.length === 0 || tasks.some((t) => !over.has(t))) return false;
  const decisions = events.filter((e) => e.type === 'cycle.decided').slice(-2);
  return decisions.length === 2 && decisions.every((e) => e.data.outcome === 'quiet');
}
