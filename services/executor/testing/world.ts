/**
 * A small world for property tests of the state machine: a log with expected sequences, a Nova with its races, and several
 * executors that crash, sleep, lose their deliveries and come back. Everything that happens is drawn from one random source.
 */

import type { TaskOptions } from '../src/options.ts';
import { decide, evolve, initialState } from '../src/task.ts';
import type { Command, Fact, Next, StageName, Stop, Task, TaskLog, TaskState, Word } from '../src/taskStages.ts';
import { SAMPLE_MS } from './sample.ts';

type Body = Fact extends infer F ? (F extends { readonly at: unknown } ? Omit<F, 'at'> : never) : never;

interface AttemptRecord {
  readonly attempt: number;
  readonly destination: string;
  started: boolean;
  newestMigrationId: number;
  observed: number | null;
  outcome: 'completed' | 'skipped' | 'failed' | null;
  next: Next | null;
  host: string | null;
  /** Requests of this attempt that Nova took. */
  posts: number;
  outcomes: number;
  /** Requests that Nova took after the attempt had its outcome. */
  late: number;
  /** Its migration was still under way when it got its outcome. */
  unfinished: boolean;
}

interface Migration {
  readonly id: number;
  readonly attempt: number;
  readonly destination: string;
  status: string;
  /** What is to come: [time, status, server's host, server's task state]. */
  readonly plan: {
    readonly at: number;
    readonly status: string;
    readonly host?: string;
    readonly idle?: boolean;
    readonly busy?: boolean;
  }[];
  visibleAt: number;
}

/** A message on the queue. */
interface Message {
  readonly attempt: number;
  readonly destination: string;
  deliveries: number;
  holder: number | null;
  /** Not delivered before this. */
  notBefore: number;
}

interface Agent {
  readonly id: number;
  readonly message: Message;
  state: TaskState;
  /** It does nothing before then: working, waiting, or stopped by a signal. */
  wakesAt: number;
  /** From then on its delivery may be another's. */
  lostAt: number;
}

export interface WorldReport {
  readonly attempts: readonly AttemptRecord[];
  readonly finals: number;
  readonly messagesLeft: number;
  readonly serverHost: string;
  readonly edges: ReadonlySet<string>;
  readonly steps: number;
  readonly history: readonly string[];
}

const ACK_WAIT = 30_000;

export function runWorld(task: Task, options: TaskOptions, chance: () => number, maxSteps = 5000): WorldReport {
  const flip = (p: number): boolean => chance() < p;
  const between = (low: number, high: number): number => low + Math.floor(chance() * (high - low + 1));
  const pick = <T>(...from: readonly [T, ...T[]]): T => from[Math.floor(chance() * from.length)] ?? from[0];

  let now = 0;
  let sequence = 10;
  let serial = 0;
  let trouble = true;
  const history: string[] = [];
  const edges = new Set<string>();
  const attempts: AttemptRecord[] = [];
  const queue: Message[] = [{ attempt: 1, destination: task.destination, deliveries: 0, holder: null, notBefore: 0 }];
  // A planner that did not know whether it had published a task has published it twice.
  if (flip(0.1)) queue.push({ attempt: 1, destination: task.destination, deliveries: 0, holder: null, notBefore: 0 });
  const agents: Agent[] = [];
  const server = { host: task.from, taskState: null as string | null };
  const migrations: Migration[] = [];
  let nextMigration = 7;
  const stopAt = flip(0.1) ? between(0, 600_000) : Number.POSITIVE_INFINITY;
  let finals = 0;
  /** How often in a row an attempt was begun alone, by the log. */
  const tries = new Map<number, { readonly tries: number; readonly at: number }>();
  /** Why an attempt was to be aborted, by the log. */
  const stops = new Map<number, Stop>();
  /** Attempts of which the log has that Nova refused to abort them. */
  const refusals = new Set<number>();

  const say = (text: string): void => {
    history.push(`${now} ${text}`);
  };

  /** Nova does what is due. */
  function advance(): void {
    for (const migration of migrations)
      while (migration.plan[0] !== undefined && migration.plan[0].at <= now) {
        const step = migration.plan.shift();
        if (step === undefined) break;
        migration.status = step.status;
        if (step.host !== undefined) server.host = step.host;
        if (step.idle === true) server.taskState = null;
        if (step.busy === true) server.taskState = 'migrating';
      }
  }

  function live(attempt: number, destination: string, delay: number): void {
    const id = ++nextMigration;
    if (delay === 0) server.taskState = 'migrating';
    let at = now + delay + between(0, 8_000);
    const visibleAt = at;
    const plan: Migration['plan'] = [];
    const then = (
      status: string,
      after: number,
      more: { host?: string; idle?: boolean; busy?: boolean } = {},
    ): void => {
      at += after;
      plan.push({ at, status, ...more });
    };
    then('accepted', 0, { busy: true });
    const end = pick('completed', 'completed', 'completed', 'failed', 'error', 'cancelled', 'switched', 'refused');
    if (end === 'refused') then('accepted', 1000, { idle: true });
    if (end !== 'refused') {
      then('queued', between(0, 5000));
      then('running', between(0, 60_000));
      const took = between(1000, 120_000);
      if (end === 'completed' || end === 'switched') then('running', took, { host: destination, idle: true });
      else then('running', took, { idle: true });
    }
    then(end === 'switched' || end === 'refused' ? 'error' : end, between(0, 2000));
    migrations.push({ id, attempt, destination, status: 'accepted', plan, visibleAt });
  }

  const wordFor = (attempt: number): Word => ({
    stopAsked: now >= stopAt,
    closeAsked: null,
    ended: readLog(attempt).attempt.kind === 'ended',
  });

  const record = (attempt: number): AttemptRecord | undefined => attempts.find((a) => a.attempt === attempt);

  function readLog(attempt: number): TaskLog {
    const found = record(attempt);
    const final = finals > 0;
    const latest = attempts.reduce((most, a) => Math.max(most, a.attempt), 0);
    const current = attempts.find((a) => a.attempt === latest);
    const known = attempt === 1 || record(attempt - 1)?.next?.attempt === attempt;
    if (!known) return { attempt: { kind: 'unknown' }, expected: sequence };
    if (found?.outcome != null || final) {
      const next = found?.next ?? null;
      const begun = next !== null && record(next.attempt) !== undefined;
      return { attempt: { kind: 'ended', next: final || begun ? null : next }, expected: sequence };
    }
    if (current !== undefined && latest > attempt)
      return { attempt: { kind: 'ended', next: null }, expected: sequence };
    if (found?.started === true)
      return {
        attempt: {
          kind: 'started',
          newestMigrationId: found.newestMigrationId,
          migrationId: found.observed,
          requestId: null,
          stop: stops.get(attempt) ?? null,
        },
        expected: sequence,
      };
    return { attempt: { kind: 'waiting' }, expected: sequence };
  }

  /** Appends with an expected sequence, as JetStream does it: known ids first, then the sequence; the answer may be lost. */
  function append(expected: number, known: boolean, write: () => void): Body {
    if (trouble && flip(0.03)) return { kind: 'lostTrack' };
    if (known || expected !== sequence) return { kind: 'conflict' };
    sequence += 1;
    write();
    return trouble && flip(0.03) ? { kind: 'lostTrack' } : { kind: 'appended', began: now };
  }

  function attemptRecord(attempt: number, destination: string): AttemptRecord {
    const found = record(attempt);
    if (found !== undefined) return found;
    const made: AttemptRecord = {
      attempt,
      destination,
      started: false,
      newestMigrationId: 0,
      observed: null,
      outcome: null,
      next: null,
      host: null,
      posts: 0,
      outcomes: 0,
      late: 0,
      unfinished: false,
    };
    attempts.push(made);
    return made;
  }

  const idle = (): { newestMigrationId: number } => ({
    newestMigrationId: migrations.filter((m) => m.visibleAt <= now).reduce((most, m) => Math.max(most, m.id), 7),
  });

  /** Does what an agent asks for; time may pass meanwhile. */
  function perform(agent: Agent, command: Exclude<Command, { do: 'finish' }>): Body {
    const { attempt, destination } = agent.message;
    switch (command.do) {
      case 'readLog':
        return { kind: 'log', log: readLog(attempt) };
      case 'awaitTurn':
        if (trouble && flip(0.02)) return { kind: 'draining' };
        return { kind: 'turn', tries: tries.get(attempt)?.tries ?? 0, agoMs: now - (tries.get(attempt)?.at ?? 0) };
      case 'appendSuspected':
        if (trouble && flip(0.1)) return { kind: 'lostTrack' };
        sequence += 1;
        tries.set(attempt, { tries: command.tries, at: now });
        return { kind: 'appended', began: now };
      case 'awaitStart': {
        const { attempt: logged, expected } = readLog(attempt);
        if (logged.kind !== 'waiting') return { kind: 'overtaken' };
        if (trouble && flip(0.02)) return { kind: 'draining' };
        if (agent.state.tried && flip(0.05)) {
          tries.set(attempt, { tries: 0, at: now });
          return { kind: 'yielded' };
        }
        const late = now > Date.parse(task.notAfter) - SAMPLE_MS;
        if (late || now >= stopAt) {
          const why = { code: late ? 'expired' : 'cancelled', text: '' };
          const failure = { errorType: 'Cancelled' as const, reason: why, fault: 'none' as const, hostAtFault: null };
          return { kind: 'mustEnd', failure, expected };
        }
        return { kind: 'mayStart', grant: { expected, disturbed: flip(0.1) } };
      }
      case 'check': {
        const verdict = (): Extract<Body, { kind: 'checked' }>['verdict'] => {
          if (trouble && flip(0.1)) return { kind: 'unreachable', text: 'down' };
          if (server.host === destination) return { kind: 'there', host: server.host };
          const failure = { errorType: 'PreFlightError' as const, reason: { code: 'x', text: '' }, hostAtFault: null };
          if (server.host !== task.from)
            return { kind: 'no', failure: { ...failure, errorType: 'Cancelled', fault: 'none' } };
          if (server.taskState !== null) return { kind: 'no', failure: { ...failure, fault: 'infrastructure' } };
          if (flip(0.1))
            return { kind: 'no', failure: { ...failure, fault: pick('destination', 'infrastructure', 'none') } };
          return { kind: 'go', forced: false, ...idle() };
        };
        return { kind: 'checked', verdict: verdict(), tookMs: flip(0.02) ? 61_000 : 100 };
      }
      case 'appendStarted': {
        const began = now;
        const known = record(attempt)?.started === true;
        const body = append(command.expected, known, () => {
          const made = attemptRecord(attempt, destination);
          made.started = true;
          made.newestMigrationId = command.newestMigrationId;
        });
        // The answer may take its time, and the process may be stopped before it reads it.
        now += pick(0, 5, 5, 2000, 20_000, 90_000);
        return body.kind === 'appended' ? { kind: 'appended', began } : body;
      }
      case 'post': {
        if (now > command.by) return { kind: 'posted', answer: { kind: 'notSent', text: 'late' } };
        if (trouble && flip(0.05)) return { kind: 'posted', answer: { kind: 'notSent', text: 'refused connection' } };
        const arrives = !(trouble && flip(0.1));
        if (arrives && server.taskState !== null)
          return { kind: 'posted', answer: { kind: 'refused', status: 409, text: 'it is in task_state migrating' } };
        if (arrives && flip(0.05)) return { kind: 'posted', answer: { kind: 'refused', status: 400, text: 'no' } };
        const answered = arrives && !(trouble && flip(0.2));
        if (arrives) {
          const made = attemptRecord(attempt, destination);
          made.posts += 1;
          if (made.outcome !== null) made.late += 1;
          // Whose answer is cut off may have been slow on its way to Nova, too.
          if (!flip(0.05)) live(attempt, destination, answered ? 0 : between(0, 20_000));
          say(`POST ${attempt} by ${agent.id}`);
        }
        return {
          kind: 'posted',
          answer: answered ? { kind: 'accepted', requestId: 'req' } : { kind: 'unknown', text: 'cut off' },
        };
      }
      case 'look': {
        now += command.afterMs;
        advance();
        if (trouble && flip(0.05)) return { kind: 'draining' };
        const word = wordFor(attempt);
        if (trouble && flip(0.1)) return { kind: 'blind', text: 'down', word };
        const rows = migrations
          .filter((m) => m.visibleAt <= now)
          .map((m) => ({
            id: m.id,
            type: 'live-migration',
            status: m.status,
            sourceCompute: task.from,
            destCompute: flip(0.1) && m.status === 'accepted' ? null : m.destination,
          }));
        const facts = { host: server.host, status: 'ACTIVE', vmState: 'active', taskState: server.taskState };
        const look = { migrations: rows, server: facts, progress: null, accepted: false };
        return { kind: 'looked', look, word };
      }
      case 'appendObserved': {
        const made = attemptRecord(attempt, destination);
        if (trouble && flip(0.1)) return { kind: 'lostTrack' };
        sequence += 1;
        made.observed ??= command.migrationId;
        return { kind: 'appended', began: now };
      }
      case 'appendAbortRequested': {
        if (trouble && flip(0.1)) return { kind: 'lostTrack' };
        if (stops.has(attempt)) return { kind: 'conflict' };
        sequence += 1;
        stops.set(attempt, command.stop);
        return { kind: 'appended', began: now };
      }
      case 'abort': {
        const found = migrations.find((m) => m.id === command.migrationId);
        const answer = pick('accepted', 'refused', 'unknown');
        const before = found?.plan.some((step) => step.host !== undefined || step.idle === true) ?? false;
        if (found !== undefined && answer !== 'refused' && before && flip(0.7)) {
          found.plan.splice(
            0,
            found.plan.length,
            { at: now + 300, status: 'running', idle: true },
            { at: now + 600, status: 'cancelled' },
          );
        }
        if (answer === 'refused') return { kind: 'abortAnswered', answer, refusal: { status: 409, text: 'no' } };
        return { kind: 'abortAnswered', answer };
      }
      case 'appendAbortRefused':
        if (trouble && flip(0.1)) return { kind: 'lostTrack' };
        if (refusals.has(attempt)) return { kind: 'conflict' };
        sequence += 1;
        refusals.add(attempt);
        return { kind: 'appended', began: now };
      case 'explain': {
        now += command.afterMs;
        if (trouble && flip(0.05)) return { kind: 'draining' };
        const word = wordFor(attempt);
        if (trouble && flip(0.2)) return { kind: 'blind', text: 'down', word };
        const story = { text: pick('no valid host', 'timed out waiting for a reply', 'x'), event: null, host: null };
        const hosts = { source: pick('up', 'up', 'down'), destination: pick('up', 'up', 'down') } as const;
        return { kind: 'explained', account: { story: flip(0.5) ? null : story, asked: flip(0.5), hosts } };
      }
      case 'appendEnded': {
        const known = record(attempt)?.outcome != null;
        return append(command.expected, known, () => {
          const made = attemptRecord(attempt, destination);
          const { ended } = command;
          made.outcome = ended.type;
          made.outcomes += 1;
          made.unfinished = migrations.some((m) => m.attempt === attempt && m.plan.length > 0);
          made.next = ended.type === 'failed' ? ended.next : null;
          made.host = ended.type === 'completed' ? ended.host : null;
          if (made.next === null) finals += 1;
          say(`${attempt} ended ${ended.type} by ${agent.id}${ended.type === 'failed' ? ` ${ended.reason.code}` : ''}`);
        });
      }
      case 'postCell':
      case 'lookCell':
      case 'appendVerifying':
      case 'appendVerified':
      case 'appendSettle':
      case 'settle':
        throw new Error(`a live migration asks for ${command.do}`);
      case 'publishNext': {
        if (trouble && flip(0.05)) return { kind: 'lostTrack' };
        // Beyond the window of the server's memory for ids a message may be there twice.
        const there = queue.some((m) => m.attempt === command.next.attempt);
        if (!there || flip(0.2)) queue.push({ ...command.next, deliveries: 0, holder: null, notBefore: 0 });
        return trouble && flip(0.05) ? { kind: 'lostTrack' } : { kind: 'published' };
      }
    }
  }

  let steps = 0;
  for (; steps < maxSteps; steps += 1) {
    if (steps > maxSteps / 2) {
      // In the second half nothing breaks any more: what can end must end.
      trouble = false;
    }
    advance();
    // Other tasks of the aggregate write too.
    if (trouble && flip(0.1)) sequence += 1;
    for (const message of queue) {
      const holder = agents.find((agent) => agent.id === message.holder);
      if ((holder !== undefined && now < holder.lostAt) || now < message.notBefore) continue;
      message.deliveries += 1;
      serial += 1;
      const delivered: Task = { ...task, attempt: message.attempt, destination: message.destination };
      agents.push({
        id: serial,
        message,
        state: initialState(delivered, options, message.deliveries),
        wakesAt: now,
        lostAt: Number.POSITIVE_INFINITY,
      });
      message.holder = serial;
      say(`delivery ${message.deliveries} of ${message.attempt} to ${serial}`);
    }
    if (agents.length === 0) {
      if (queue.length === 0) break;
      now = Math.max(now, Math.min(...queue.map(({ notBefore }) => notBefore)));
      continue;
    }
    const agent = agents.reduce((first, other) => (other.wakesAt < first.wakesAt ? other : first));
    now = Math.max(now, agent.wakesAt);
    const leave = (why: string): void => {
      agents.splice(agents.indexOf(agent), 1);
      say(`${agent.id} ${why}`);
    };
    if (trouble && flip(0.01)) {
      // Killed: the server gives the message to another after the ack wait.
      agent.lostAt = Math.min(agent.lostAt, now + ACK_WAIT);
      const { message } = agent;
      leave('killed');
      if (message.holder === agent.id) message.holder = null;
      now += ACK_WAIT;
      continue;
    }
    if (trouble && flip(0.01)) {
      // Stopped by a signal, for longer than the ack wait or not: it wakes up in the middle of what it did.
      const nap = between(1000, 120_000);
      if (nap > ACK_WAIT) agent.lostAt = Math.min(agent.lostAt, now + ACK_WAIT);
      agent.wakesAt = now + nap;
      say(`${agent.id} sleeps ${nap}`);
      continue;
    }
    const command = decide(agent.state);
    const begun = now;
    const { stage } = agent.state;
    if (stage.at === 'following' && !stage.soon) tries.delete(agent.message.attempt);
    if (command.do === 'awaitStart' && command.notBefore > now) {
      agent.wakesAt = command.notBefore;
      const early = readLog(agent.message.attempt).attempt.kind;
      if (early === 'waiting') continue;
    }
    if (command.do === 'finish') {
      const mine = agent.message.holder === agent.id;
      leave(`leaves: ${command.why.code}`);
      if (!mine) continue;
      if (command.outcome.kind === 'done') queue.splice(queue.indexOf(agent.message), 1);
      else {
        agent.message.holder = null;
        if (command.outcome.kind === 'later') agent.message.notBefore = now + command.outcome.delayMs;
      }
      continue;
    }
    const body = perform(agent, command);
    // A delivery lost on the way ends the agent at its next step, as the runner does.
    if (now >= agent.lostAt) {
      leave('finds its delivery lost');
      continue;
    }
    const from: StageName = agent.state.stage.at;
    agent.state = evolve(agent.state, { ...body, at: { mono: now, wall: SAMPLE_MS + now } });
    edges.add(`${from} --> ${agent.state.stage.at}`);
    agent.wakesAt = now + between(0, 50);
    if (now - begun > ACK_WAIT && flip(0.2)) agent.lostAt = now;
  }
  return {
    attempts,
    finals,
    messagesLeft: queue.length,
    serverHost: server.host,
    edges,
    steps,
    history,
  };
}
