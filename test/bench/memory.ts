/**
 * The memory of the fold of a long history, and its cost for a decision: a year at 100 moves an hour in each of 20
 * aggregates, half of the VMs replaced, one move in fifty failing. Measured are the folded state of all aggregates and the
 * CPU time that a decision of one aggregate takes to read it: its state as the planner's core takes it, with the digest.
 * Prints JSON.
 *
 *   npm run bench:memory [days, default 365] [aggregates, default 20]
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { canonicalJson, cycleSnapshotId, type LogEvent, messageId, type Step } from '@kronos/contracts';
import { digest, toMemory } from '@kronos/cycle';
import { absence, aggregateState, createFolder } from '@kronos/projections';
import { testLog, testStep } from '@kronos/projections/testing';
import { cpuMs } from './cpuTime.ts';

const days = Number(process.argv[2] ?? 365);
const count = Number(process.argv[3] ?? 20);
const MOVES_PER_HOUR = 100;
const VMS = 2_000;
const HOSTS = 50;
const FAILING = 50;
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1);
const LIMITS = { decisionCpuMs: 50, stateMb: 100 };

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const heapMb = (): number => {
  gc();
  return process.memoryUsage().heapUsed / 1024 ** 2;
};

const uuid = (aggregate: number, n: number): string =>
  `${aggregate.toString(16).padStart(8, '0')}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
const hosts = Array.from({ length: HOSTS }, (_, i) => ({ name: `compute-${String(i).padStart(3, '0')}` }));
const host = (n: number): string => hosts[n % HOSTS]?.name ?? '';

/** The VMs that are there. For two VMs that are moved, one that was moved before is replaced by a new one. */
class Estate {
  readonly servers: { readonly id: string }[];
  readonly #aggregate: number;
  #made = VMS;

  constructor(aggregate: number) {
    this.#aggregate = aggregate;
    this.servers = Array.from({ length: VMS }, (_, i) => ({ id: uuid(aggregate, i) }));
  }

  hour(): void {
    for (let i = 0; i < MOVES_PER_HOUR / 2; i++) {
      this.servers[(this.#made * 2) % VMS] = { id: uuid(this.#aggregate, this.#made) };
      this.#made++;
    }
  }
}

const folder = createFolder();
const estates = Array.from({ length: count }, (_, i) => new Estate(i));
const names = estates.map((_, i) => `aggregate-${i}`);
const configured = testLog('x', START_MS);
configured.configured();
const [options] = configured.events;
if (options?.event.type !== 'planner.configured') throw new Error('no options');
const by = options.event.by;
let sequence = 0;

function put(event: LogEvent): void {
  folder.apply({ sequence: ++sequence, storedAt: Date.parse(event.time), event });
}

/** One plan of an hour: decided, dispatched and executed. */
function hour(n: number, i: number): void {
  const aggregate = names[i] ?? '';
  const estate = estates[i];
  if (estate === undefined) return;
  estate.hour();
  const nowMs = START_MS + n * HOUR_MS;
  const time = new Date(nowMs).toISOString();
  const snapshotId = cycleSnapshotId(aggregate, n);
  const head = { version: 1 as const, time, aggregate, by, correlationId: snapshotId, causationId: null };
  const moved = Array.from(
    { length: MOVES_PER_HOUR },
    (_, k) => estate.servers[(n * MOVES_PER_HOUR + k) % VMS]?.id ?? '',
  );
  const steps = moved.map((serverId, k) =>
    testStep(snapshotId, k + 1, { serverId, from: host(n + k), to: host(n + k + 1) }),
  );
  // Every decision could say it. Once a day is enough here, and a state that is asked for is copied on the next event.
  const said = n % 24 === 0 ? absence(aggregateState(folder.snapshot(), aggregate), estate.servers) : null;
  put(decidedBy(head, n, steps, said));
  put({
    ...head,
    type: 'plan.dispatched',
    id: messageId.dispatched(snapshotId),
    data: { planId: snapshotId, tasks: steps.length },
  });
  for (const [k, step] of steps.entries()) put(endOf(head, step, (n + k) % FAILING === 0));
}

type Said = ReturnType<typeof absence> | null;
type Head = Pick<LogEvent, 'time' | 'aggregate' | 'by' | 'correlationId' | 'causationId'> & { readonly version: 1 };

const decidedBy = (head: Head, n: number, steps: Step[], said: Said): LogEvent => {
  const snapshotId = head.correlationId;
  return {
    ...head,
    type: 'cycle.decided',
    id: messageId.decided(snapshotId),
    data: {
      outcome: 'planned',
      reason: { code: 'planned', text: 'planned' },
      before: { combined: 0.3, policies: [] },
      plan: {
        id: snapshotId,
        planner: 'search',
        budget: MOVES_PER_HOUR,
        steps,
        after: { combined: 0.1, policies: [] },
        lowerBound: null,
        shareOfPossible: null,
        candidatesEvaluated: 1,
      },
      refusals: {},
      warnings: [],
      stuck: [],
      evacuations: [],
      snapshotId,
      snapshotTime: head.time,
      cycle: n,
      basis: sequence,
      release: 'released',
      plannerVersion: '1',
      digests: { snapshot: '', policies: '', state: '', options: '', decision: '' },
      ...(said === null ? {} : { absence: said }),
      details: null,
    },
  };
};

/** The end of a step's first attempt. */
function endOf(head: Head, step: Step, fails: boolean): LogEvent {
  const attempt = {
    taskId: step.taskId,
    planId: head.correlationId,
    serverId: step.serverId,
    attempt: 1,
    from: step.from,
    destination: step.to,
  };
  const own = { ...head, id: messageId.ended(step.taskId, 1), by: { ...by, service: 'executor' as const } };
  if (!fails)
    return {
      ...own,
      type: 'migration.completed',
      data: { ...attempt, outcome: 'migrated', host: step.to, retries: 0, nova: null, warnings: [] },
    };
  return {
    ...own,
    type: 'migration.failed',
    data: {
      ...attempt,
      errorType: 'MigrationFailed',
      reason: { code: 'migration-failed', text: 'Live migration failed: operation aborted by the hypervisor' },
      retries: 0,
      retryPending: false,
      next: null,
      hostAtFault: step.to,
      started: true,
      nova: null,
    },
  };
}

/** Median CPU time of one run, in ms. */
function medianMs(act: () => unknown): number {
  const times = Array.from({ length: 9 }, () => {
    const before = cpuMs();
    act();
    return cpuMs() - before;
  });
  return times.sort((a, b) => a - b)[4] ?? 0;
}

const round = (value: number): number => Math.round(value * 100) / 100;
for (const name of names)
  put({
    ...options.event,
    aggregate: name,
    id: messageId.configured(name, 'x', 0),
    time: new Date(START_MS).toISOString(),
  });

const emptyMb = heapMb();
const began = performance.now();
for (let n = 1; n <= days * 24; n++) for (let i = 0; i < count; i++) hour(n, i);
const foldMs = performance.now() - began;
const state = folder.snapshot();
const stateMb = heapMb() - emptyMb;

const [first] = names;
const [estate] = estates;
if (first === undefined || estate === undefined) throw new Error('there is no aggregate');
const decision = medianMs(() =>
  digest(toMemory(aggregateState(folder.snapshot(), first), { servers: estate.servers, hosts })),
);
const { vmReleases, vmFailures } = aggregateState(state, first);

console.log(
  canonicalJson({
    days,
    aggregates: count,
    events: sequence,
    foldEventsPerSecond: Math.round((sequence / foldMs) * 1000),
    stateMb: round(stateMb),
    decisionCpuMs: round(decision),
    vmReleases: vmReleases.size,
    vmFailures: vmFailures.size,
    limits: LIMITS,
    ok: stateMb <= LIMITS.stateMb && decision <= LIMITS.decisionCpuMs,
  }),
);
if (stateMb > LIMITS.stateMb || decision > LIMITS.decisionCpuMs) process.exitCode = 1;
