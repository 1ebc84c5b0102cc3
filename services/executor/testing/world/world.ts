/**
 * A small world for property tests of the state machine: a log with expected sequences, a Nova with its races, and several
 * executors that crash, sleep, lose their deliveries and come back. Everything that happens is drawn from one random source.
 */

import type { TaskOptions } from '../../src/options.ts';
import { decide, evolve, initialState } from '../../src/task.ts';
import type { Task } from '../../src/taskFacts.ts';
import type { StageName, TaskState } from '../../src/taskStages.ts';
import { SAMPLE_MS } from '../sample.ts';
import { type AttemptRecord, Log } from './log.ts';
import { Nova } from './nova.ts';
import { perform, type World } from './perform.ts';
import { type Message, Queue } from './queue.ts';
import { Scene } from './scene.ts';

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
  const scene = new Scene(task, options, chance);
  const queue = new Queue(scene);
  if (scene.flip(0.1)) scene.stopAt = scene.between(0, 600_000);
  const world = { scene, queue, nova: new Nova(scene), log: new Log(scene) };
  const replicas = new Replicas(world);
  let steps = 0;
  for (; steps < maxSteps; steps += 1) {
    // In the second half nothing breaks any more: what can end must end.
    if (steps > maxSteps / 2) scene.trouble = false;
    world.nova.advance();
    if (scene.fails(0.1)) world.log.othersWrite();
    for (const message of queue.messages) replicas.deliver(message);
    if (replicas.next() !== null) continue;
    if (queue.messages.length === 0) break;
    scene.now = Math.max(scene.now, Math.min(...queue.messages.map(({ notBefore }) => notBefore)));
  }
  return {
    attempts: world.log.attempts,
    finals: world.log.finals,
    messagesLeft: queue.messages.length,
    serverHost: world.nova.server.host,
    edges: replicas.edges,
    steps,
    history: scene.history,
  };
}

/** The executors, each with one delivery. */
class Replicas {
  /** Transitions that the state machine made. */
  readonly edges = new Set<string>();
  readonly #world: World;
  readonly #agents: Agent[] = [];
  #serial = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Gives a message to a new executor, unless one holds it. */
  deliver(message: Message): void {
    const { scene } = this.#world;
    const holder = this.#agents.find((agent) => agent.id === message.holder);
    if ((holder !== undefined && scene.now < holder.lostAt) || scene.now < message.notBefore) return;
    message.deliveries += 1;
    this.#serial += 1;
    const delivered: Task = { ...scene.task, attempt: message.attempt, destination: message.destination };
    this.#agents.push({
      id: this.#serial,
      message,
      state: initialState(delivered, scene.options, message.deliveries),
      wakesAt: scene.now,
      lostAt: Number.POSITIVE_INFINITY,
    });
    message.holder = this.#serial;
    scene.say(`delivery ${message.deliveries} of ${message.attempt} to ${this.#serial}`);
  }

  /** The executor that wakes up first does its next step, or has an accident; null: there is none. */
  next(): Agent | null {
    if (this.#agents.length === 0) return null;
    const { scene } = this.#world;
    const agent = this.#agents.reduce((first, other) => (other.wakesAt < first.wakesAt ? other : first));
    scene.now = Math.max(scene.now, agent.wakesAt);
    if (!this.#accident(agent)) this.#step(agent);
    return agent;
  }

  #leave(agent: Agent, why: string): void {
    this.#agents.splice(this.#agents.indexOf(agent), 1);
    this.#world.scene.say(`${agent.id} ${why}`);
  }

  #accident(agent: Agent): boolean {
    const { scene } = this.#world;
    if (scene.fails(0.01)) {
      // Killed: the server gives the message to another after the ack wait.
      agent.lostAt = Math.min(agent.lostAt, scene.now + ACK_WAIT);
      const { message } = agent;
      this.#leave(agent, 'killed');
      if (message.holder === agent.id) message.holder = null;
      scene.now += ACK_WAIT;
      return true;
    }
    if (scene.fails(0.01)) {
      // Stopped by a signal, for longer than the ack wait or not: it wakes up in the middle of what it did.
      const nap = scene.between(1000, 120_000);
      if (nap > ACK_WAIT) agent.lostAt = Math.min(agent.lostAt, scene.now + ACK_WAIT);
      agent.wakesAt = scene.now + nap;
      scene.say(`${agent.id} sleeps ${nap}`);
      return true;
    }
    return false;
  }

  #step(agent: Agent): void {
    const { scene, log } = this.#world;
    const { attempt } = agent.message;
    const command = decide(agent.state);
    const begun = scene.now;
    const { stage } = agent.state;
    if (stage.at === 'following' && !stage.soon) log.forgetTries(attempt);
    if (command.do === 'awaitStart' && command.notBefore > scene.now) {
      agent.wakesAt = command.notBefore;
      if (log.read(attempt).attempt.kind === 'waiting') return;
    }
    if (command.do === 'finish') {
      const { why, outcome } = command;
      this.#leave(agent, `leaves: ${why.code}`);
      this.#finish(agent, outcome.kind === 'done' ? null : outcome.kind === 'later' ? outcome.delayMs : 0);
      return;
    }
    const doing = { attempt, destination: agent.message.destination, agent: agent.id };
    const body = perform(this.#world, doing, agent.state, command);
    // A delivery lost on the way ends the agent at its next step, as the runner does.
    if (scene.now >= agent.lostAt) {
      this.#leave(agent, 'finds its delivery lost');
      return;
    }
    const from: StageName = agent.state.stage.at;
    agent.state = evolve(agent.state, { ...body, at: { mono: scene.now, wall: SAMPLE_MS + scene.now } });
    this.edges.add(`${from} --> ${agent.state.stage.at}`);
    agent.wakesAt = scene.now + scene.between(0, 50);
    if (scene.now - begun > ACK_WAIT && scene.flip(0.2)) agent.lostAt = scene.now;
  }

  /** @param againMs after which the message is delivered again; null: it is done */
  #finish({ id, message }: Agent, againMs: number | null): void {
    const { queue, scene } = this.#world;
    if (message.holder !== id) return;
    if (againMs === null) {
      queue.remove(message);
      return;
    }
    message.holder = null;
    if (againMs > 0) message.notBefore = scene.now + againMs;
  }
}
