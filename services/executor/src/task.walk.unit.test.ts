import { readFileSync } from 'node:fs';
import { random } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { SAMPLE_MS, sampleTask } from '../testing/sample.ts';
import { defaultTaskOptions } from './options.ts';
import { decide, evolve, initialState } from './task.ts';
import type { Command, Fact, MigrationFacts, NovaLook, PreflightVerdict, TaskState } from './taskStages.ts';

type Body = Fact extends infer F ? (F extends { readonly at: unknown } ? Omit<F, 'at'> : never) : never;

/** Facts at random that fit what a stage asks for. */
class Chance {
  readonly #uniform: () => number;

  constructor(seed: number) {
    this.#uniform = random(seed);
  }

  readonly pick = <T>(...from: readonly T[]): T => from[Math.floor(this.#uniform() * from.length)] as T;
  readonly flip = (share: number): boolean => this.#uniform() < share;

  #log(): Body {
    const { pick } = this;
    const started = { kind: 'started' as const, newestMigrationId: 7, requestId: null };
    const attempt = pick(
      { kind: 'waiting' as const },
      { kind: 'waiting' as const },
      { ...started, migrationId: pick(null, 8), stop: pick(null, { cause: 'operator' as const }) },
      { kind: 'ended' as const, next: pick(null, { attempt: 2, destination: 'h3', notBeforeMs: SAMPLE_MS }) },
      { kind: 'unknown' as const },
    );
    return { kind: 'log', log: { attempt, expected: 9 } };
  }

  #start(tried: boolean): Body {
    const failure = {
      errorType: 'Cancelled',
      reason: { code: 'expired', text: '' },
      cause: 'kronos',
      fault: 'none',
      hostAtFault: null,
    } as const;
    return this.pick<Body>(
      { kind: 'mayStart', grant: { expected: 9, disturbed: this.flip(0.1) } },
      { kind: 'mayStart', grant: { expected: 9, disturbed: false } },
      { kind: 'mayStart', grant: { expected: 9, disturbed: false } },
      tried ? { kind: 'yielded' } : { kind: 'overtaken' },
      this.pick<Body>({ kind: 'draining' }, { kind: 'requeued', delayMs: 1000 }),
      { kind: 'mustEnd', failure, expected: 9 },
    );
  }

  #check(): Body {
    const fault = this.pick('destination', 'infrastructure', 'none');
    const reason = { code: 'x', text: '' };
    const failure = { errorType: 'PreFlightError', reason, cause: 'unknown', fault, hostAtFault: null } as const;
    const go: PreflightVerdict = { kind: 'go', forced: false, newestMigrationId: 7 };
    const verdict = this.pick<PreflightVerdict>(
      go,
      go,
      go,
      { kind: 'there', host: 'h2' },
      { kind: 'no', failure },
      { kind: 'unreachable', text: '' },
    );
    return { kind: 'checked', verdict, tookMs: this.pick(100, 100, 61_000) };
  }

  #post(): Body {
    const answer = this.pick(
      { kind: 'accepted', requestId: null } as const,
      { kind: 'accepted', requestId: null } as const,
      { kind: 'unknown', text: '' } as const,
      { kind: 'notSent', text: '' } as const,
      { kind: 'refused', status: this.pick(400, 409), text: 'it is in task_state migrating' } as const,
    );
    return { kind: 'posted', answer };
  }

  #look(): Body {
    const { pick, flip } = this;
    const word = {
      stopAsked: flip(0.1),
      closeAsked: flip(0.03) ? { by: 'ada', comment: null } : null,
      ended: flip(0.03),
    };
    if (flip(0.05)) return { kind: 'draining' };
    if (flip(0.1)) return { kind: 'blind', text: '', word };
    const status = pick('accepted', 'queued', 'running', 'running', 'completed', 'failed', 'error', 'cancelled');
    const row: MigrationFacts = { id: 8, type: 'live-migration', status, sourceCompute: 'h1', destCompute: 'h2' };
    const on = { host: pick('h1', 'h1', 'h2', 'h3'), status: 'ACTIVE', vmState: 'active' };
    const server = pick<NovaLook['server']>(
      { ...on, taskState: null },
      { ...on, taskState: 'migrating' },
      { ...on, status: 'ERROR', vmState: 'error', taskState: null },
      pick('gone', null),
    );
    return {
      kind: 'looked',
      word,
      look: { migrations: pick([], [row], [row]), server, progress: null, accepted: flip(0.1) },
    };
  }

  #explained(): Body {
    const word = { stopAsked: false, closeAsked: null, ended: false };
    const hosts = { source: this.pick('up', 'down'), destination: this.pick('up', 'down') } as const;
    const story = this.pick(null, { text: 'no valid host', event: null, host: null });
    return this.pick<Body>(
      { kind: 'explained', account: { story, asked: this.flip(0.5), hosts } },
      { kind: 'explained', account: { story, asked: true, hosts } },
      { kind: 'blind', text: '', word },
      { kind: 'draining' },
    );
  }

  fact(command: Command, tried: boolean): Body {
    switch (command.do) {
      case 'readLog':
        return this.#log();
      case 'awaitTurn':
        return this.pick<Body>({ kind: 'draining' }, { kind: 'turn', tries: this.pick(0, 1, 2, 3), agoMs: 0 });
      case 'awaitStart':
        return this.#start(tried);
      case 'check':
        return this.#check();
      case 'post':
        return this.#post();
      case 'look':
        return this.#look();
      case 'abort':
        return this.pick<Body>(
          { kind: 'abortAnswered', answer: this.pick('accepted', 'unknown') },
          { kind: 'abortAnswered', answer: 'refused', refusal: { status: 409, text: 'no' } },
        );
      case 'explain':
        return this.#explained();
      case 'publishNext':
        return this.pick<Body>({ kind: 'published' }, { kind: 'lostTrack' });
      default:
        return this.pick<Body>({ kind: 'appended', began: 0 }, { kind: 'conflict' }, { kind: 'lostTrack' });
    }
  }
}

/** One executor's life with a task, and where Nova showed the server last. */
function walk(seed: number, edges: Set<string>): void {
  const chance = new Chance(seed);
  // Some executors suspect every task, and have little patience.
  const poison = seed % 4 === 0 ? { suspectDeliveries: 0, suspectTries: 2 } : {};
  const options = {
    ...defaultTaskOptions,
    deadlineMinMs: 90_000,
    deadlinePerGibMs: 0,
    dryRun: seed % 5 === 0,
    ...poison,
  };
  let state: TaskState = initialState(sampleTask({ ramMb: 2048 }), options, 1);
  let mono = 0;
  let posts = 0;
  let host: string | null = null;
  for (let step = 0; step < 80; step++) {
    const command = decide(state);
    if (command.do === 'finish') break;
    if (command.do === 'post') posts++;
    if (command.do === 'appendEnded') {
      const { ended } = command;
      if (ended.type === 'completed' && ended.outcome === 'migrated') expect(ended.host).toBe(host);
      if (ended.type === 'failed') expect(ended.next?.attempt ?? 2).toBe(2);
    }
    const body = chance.fact(command, state.tried);
    if (body.kind === 'looked' && body.look.server !== null && body.look.server !== 'gone')
      host = body.look.server.host;
    mono += chance.pick(0, 50, 5_000, 70_000, 700_000);
    const from = state.stage.at;
    state = evolve(state, { ...body, at: { mono, wall: SAMPLE_MS + mono } });
    edges.add(`${from} --> ${state.stage.at}`);
  }
  expect(posts, `seed ${seed}`).toBeLessThanOrEqual(1);
}

it('over random lives an executor asks Nova at most once, and the README draws every transition', () => {
  const edges = new Set<string>();
  for (let seed = 0; seed < 20_000; seed++) walk(seed, edges);
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const drawn = [...readme.matchAll(/^ {4}(\w+) --> (\w+)/gm)].map(([, from, to]) => `${from} --> ${to}`);
  expect([...edges].sort()).toEqual([...new Set(drawn)].sort());
});
