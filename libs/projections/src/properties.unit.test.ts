import { defaultEngineOptions, type StoredEvent } from '@kronos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HistoryOptions, randomHistory } from '../testing/index.ts';
import { waitingPlan } from './approvals.ts';
import { canonicalState, fromParts, toParts } from './checkpoint.ts';
import { cooldownOf, coolingDown } from './cooldown.ts';
import { createFolder, evolve, fold } from './evolve.ts';
import { quarantineTable } from './quarantine.ts';
import { mayStart, slots } from './slots.ts';
import { aggregateState, initialLogState, type LogState } from './state.ts';

const histories = (most: number, options: Omit<HistoryOptions, 'seed'> = {}) =>
  fc
    .record({ seed: fc.integer(), commands: fc.constantFrom(0.05, 0.4), repeats: fc.constantFrom(0, 0.1) })
    .map((chosen) => take(randomHistory({ ...options, ...chosen, unreadable: 0.002 }), most));

function take(events: Iterable<StoredEvent>, most: number): StoredEvent[] {
  const taken: StoredEvent[] = [];
  for (const event of events) {
    taken.push(event);
    if (taken.length === most) break;
  }
  return taken;
}

/** The state after the first `cut` events, through a checkpoint, then the rest. */
function throughCheckpoint(history: readonly StoredEvent[], cut: number): LogState {
  const parts = toParts(fold(history.slice(0, cut)), 'anchor');
  if (parts.length === 0) return fold(history);
  const restored = fromParts(JSON.parse(JSON.stringify(parts)));
  if (!restored.ok) throw new Error(restored.problem);
  return fold(history.slice(cut), restored.state);
}

const facts = (state: LogState): string => canonicalState({ ...state, sequence: 0 });
/** Without the sequence numbers of the log, which differ where the same events stand at other places. */
const factsBarSequences = (state: LogState): string => facts(state).replace(/"sequence":\d+/g, '');
const renumbered = (events: readonly StoredEvent['event'][]): StoredEvent[] =>
  events.map((event, i) => ({ sequence: i + 1, storedAt: timeOfTest(event), event }));
const timeOfTest = (event: StoredEvent['event']): number => (event.type === 'unreadable' ? 0 : Date.parse(event.time));

/** The time at which a log was restored, ms since the epoch. */
const RESTORED_MS = Date.UTC(2031, 0, 1);

describe('the fold', () => {
  it('comes from every checkpoint and its tail to the very state that it has from the first event', () => {
    fc.assert(
      fc.property(histories(200, { cycles: 30 }), (history) => {
        const whole = canonicalState(fold(history));
        for (let cut = 0; cut <= history.length; cut++)
          if (canonicalState(throughCheckpoint(history, cut)) !== whole) throw new Error(`differs when cut at ${cut}`);
      }),
      { numRuns: 4 },
    );
  });

  it('comes from 60 random checkpoints of a long history to the very same state', () => {
    const history = take(randomHistory({ seed: 11, cycles: 800, commands: 0.3 }), 5000);
    const whole = canonicalState(fold(history));
    fc.assert(
      fc.property(fc.integer({ min: 0, max: history.length }), (cut) => {
        expect(canonicalState(throughCheckpoint(history, cut)) === whole).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it('never changes by an act that is reported again, however often and however late', () => {
    fc.assert(
      fc.property(
        histories(150, { cycles: 20, repeats: 0 }),
        fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 40 }),
        (history, repeats) => {
          const once = history.map((e) => e.event).filter((e) => e.type !== 'unreadable');
          const after = new Map<number, typeof once>();
          for (const [which, delay] of repeats) {
            const index = which % once.length;
            const event = once[index];
            const place = Math.min(once.length - 1, index + (delay % once.length));
            if (event !== undefined) after.set(place, [...(after.get(place) ?? []), event]);
          }
          const doubled = once.flatMap((event, i) => [event, ...(after.get(i) ?? [])]);
          expect(factsBarSequences(fold(renumbered(doubled)))).toBe(factsBarSequences(fold(renumbered(once))));
        },
      ),
      { numRuns: 75 },
    );
  });

  it('never changes by events that are delivered again, however old, in the middle and at the end', () => {
    const again = fc.record({ after: fc.nat(), back: fc.nat({ max: 60 }), length: fc.integer({ min: 1, max: 20 }) });
    fc.assert(
      fc.property(
        histories(150, { cycles: 20 }),
        fc.array(again, { minLength: 1, maxLength: 20 }),
        (history, repeats) => {
          const last = history.length - 1;
          const blocks = new Map<number, StoredEvent[]>();
          for (const [n, { after, back, length }] of repeats.entries()) {
            // The last event must be new, so one of them is appended at the very end.
            const place = n === 0 ? last : after % history.length;
            const from = Math.max(0, place - back);
            const block = history.slice(from, Math.min(from + length, place + 1));
            blocks.set(place, [...(blocks.get(place) ?? []), ...block]);
          }
          const redelivered = history.flatMap((stored, i) => [stored, ...(blocks.get(i) ?? [])]);
          expect(canonicalState(fold(redelivered))).toBe(canonicalState(fold(history)));
        },
      ),
      { numRuns: 50 },
    );
  });

  it('never depends on when it is read, nor on timestamps of the server that are close to the times of the events', () => {
    fc.assert(
      fc.property(
        histories(200, { cycles: 30, repeats: 0 }),
        fc.integer({ min: -50_000, max: 50_000 }),
        (history, by) => {
          const restamped = history.map((stored) => ({ ...stored, storedAt: stored.storedAt + by }));
          expect(canonicalState(fold(restamped))).toBe(canonicalState(fold(history)));
        },
      ),
      { numRuns: 25 },
    );
  });

  it('of a log that was restored is the fold of the log that it is a copy of, through every checkpoint', () => {
    fc.assert(
      fc.property(histories(200, { cycles: 30 }), fc.nat(), fc.nat(), (history, place, cut) => {
        const last = place % history.length;
        const restored = history.map(
          (stored, i): StoredEvent =>
            i < last ? { ...stored, storedAt: RESTORED_MS, originallyStoredAt: stored.storedAt } : stored,
        );
        expect(facts(throughCheckpoint(restored, cut % history.length))).toBe(facts(fold(history)));
      }),
      { numRuns: 25 },
    );
  });

  it('never depends on the options of its reader: asking with others leaves it as it is', () => {
    fc.assert(
      fc.property(
        histories(200, { cycles: 30 }),
        fc.record({ seconds: fc.integer({ min: 0, max: 1e6 }), nowMs: fc.integer({ min: 0, max: 4e12 }) }),
        (history, { seconds, nowMs }) => {
          const state = fold(history);
          const before = canonicalState(state);
          const options = { ...defaultEngineOptions, cooldownSeconds: seconds, instanceQuarantineSeconds: seconds };
          const caps = {
            maxConcurrentMigrations: 1,
            maxOutboundPerHost: 1,
            maxInboundPerHost: 1,
            maxConcurrentPerGroup: 1,
          };
          for (const name of state.aggregates.keys()) {
            const one = aggregateState(state, name);
            cooldownOf(one, nowMs, options);
            quarantineTable(one, nowMs, options);
            waitingPlan(one, nowMs);
            for (const id of one.vmReleases.keys()) coolingDown(one, id, nowMs, options);
            for (const task of one.tasks.values())
              mayStart(one, { taskId: task.id, attempt: task.attempt, destination: task.destination }, nowMs, { caps });
          }
          expect(canonicalState(state)).toBe(before);
        },
      ),
      { numRuns: 25 },
    );
  });

  it('is the same in one go, event by event and with states handed out on the way', () => {
    fc.assert(
      fc.property(histories(200, { cycles: 30 }), fc.array(fc.boolean(), { minLength: 1 }), (history, looks) => {
        const whole = canonicalState(fold(history));
        expect(canonicalState(history.reduce(evolve, initialLogState()))).toBe(whole);
        const folder = createFolder();
        const seen: { state: LogState; text: string }[] = [];
        history.forEach((stored, i) => {
          folder.apply(stored);
          if (looks[i % looks.length] && i % 10 === 0) {
            const state = folder.snapshot();
            seen.push({ state, text: canonicalState(state) });
          }
        });
        expect(canonicalState(folder.snapshot())).toBe(whole);
        for (const { state, text } of seen) expect(canonicalState(state) === text).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it('keeps aggregates apart: what happens to one never changes another, except for commands to all and what follows a VM or a host', () => {
    fc.assert(
      fc.property(histories(300, { cycles: 40 }), (history) => {
        const whole = fold(history);
        for (const name of whole.aggregates.keys()) {
          const own = history.filter((s) => s.event.aggregate === name || s.event.aggregate === '_all_');
          const alone = aggregateState(fold(own), name);
          const others = { operatorQuarantines: null, elsewhere: null };
          expect({ ...alone, ...others }).toEqual({ ...aggregateState(whole, name), ...others });
        }
      }),
      { numRuns: 25 },
    );
  });
});

describe('slots', () => {
  it('are never more than a cap while every start asks first', () => {
    const caps = { maxConcurrentMigrations: 2, maxOutboundPerHost: 1, maxInboundPerHost: 1, maxConcurrentPerGroup: 1 };
    fc.assert(
      fc.property(histories(400, { cycles: 60, hosts: 3, repeats: 0 }), (history) => {
        const folder = createFolder();
        let sequence = 0;
        for (const { event, storedAt } of history) {
          if (event.type === 'migration.started') {
            const { taskId, attempt, destination } = event.data;
            const state = aggregateState(folder.snapshot(), event.aggregate);
            const may = mayStart(state, { taskId, attempt, destination }, Date.parse(event.time), { caps });
            if (may.verdict !== 'start') continue;
          }
          sequence += 1;
          folder.apply({ sequence, storedAt, event });
          if (event.type !== 'migration.started') continue;
          const used = slots(aggregateState(folder.snapshot(), event.aggregate));
          expect(used.total).toBeLessThanOrEqual(2);
          for (const counts of [used.bySource, used.byDestination, used.byGroup])
            for (const count of counts.values()) expect(count).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 25 },
    );
  });

  it('are never held by a task that is over, and never lost by one that runs', () => {
    fc.assert(
      fc.property(histories(300, { cycles: 40 }), (history) => {
        for (const facts of fold(history).aggregates.values())
          for (const task of facts.tasks.values()) expect(task.slot !== null).toBe(task.status === 'started');
      }),
      { numRuns: 25 },
    );
  });
});
