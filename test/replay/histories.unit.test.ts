import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { logEventSchemas, logEventTypes } from '@kronos/contracts';
import { plannerVersion } from '@kronos/placement';
import { readRecording, verify } from '@kronos/replay';
import { describe, expect, it } from 'vitest';
import { released } from '../golden/plans.ts';
import { optionalFields, optionalFieldsOf } from './everyField.ts';
import { factsOf } from './facts.ts';
import { type FoldRecord, foldNow, foldProblem, HISTORIES, histories, recordedFold } from './foldRecord.ts';

/** The events of each history, read once. */
const eventsOf = new Map(
  await Promise.all(
    histories().map(async (version) => {
      const { history } = await readRecording(join(HISTORIES, version));
      return [version, await Array.fromAsync(history.events())] as const;
    }),
  ),
);
const everyRecorded = [...eventsOf.values()].flat().map(({ event }) => event);

describe.each(histories())('the history that version %s wrote', (version) => {
  it('is read whole, and folds to the facts that it folded to then', () => {
    const events = eventsOf.get(version) ?? [];
    expect(events.filter(({ event }) => event.type === 'unreadable')).toEqual([]);
    expect(factsOf(events)).toEqual(JSON.parse(readFileSync(join(HISTORIES, version, 'facts.json'), 'utf8')));
  });

  it('has snapshots that can be decided again, from the state that they were decided on', async () => {
    const { history } = await readRecording(join(HISTORIES, version));
    const cycles = await Array.fromAsync(verify(history, {}));
    const run = cycles.filter((cycle) => cycle.verdict !== 'notReplayed');
    // A history of every type of event has no snapshots.
    expect(run.length > 0).toBe(!version.endsWith('-events'));
    for (const cycle of run) {
      // Another planner version may keep another memory and decide otherwise. The same version gets the same input again.
      if (cycle.plannerVersion !== plannerVersion) expect(cycle.verdict).not.toBe('different');
      else expect('causes' in cycle ? cycle.causes : []).toEqual([]);
    }
  });
});

it('there is a history of every planner version that was released', () => {
  const recorded = new Set(
    everyRecorded.flatMap((event) => (event.type === 'cycle.decided' ? [event.data.plannerVersion] : [])),
  );
  expect(Object.values(released()).filter((version) => !recorded.has(version))).toEqual([]);
});

it('there is a history with every type of event that the log may hold', () => {
  const recorded = new Set(everyRecorded.map(({ type }) => type));
  // A new type: its part in everyEvent.ts, then `node test/replay/writeHistory.ts NAME-events --every-event` with a new NAME.
  expect(logEventTypes.filter((type) => !recorded.has(type))).toEqual([]);
});

it('there are histories with and without each optional field of an event', () => {
  const missing = logEventSchemas.flatMap((schema) => {
    const type = schema.shape.type.value;
    const seen = new Set(
      everyRecorded.flatMap((event) => (event.type === type ? optionalFieldsOf(schema, event) : [])),
    );
    return optionalFields(schema)
      .flatMap((field) => [`+${field}`, `-${field}`])
      .filter((field) => !seen.has(field))
      .map((field) => `${type} ${field}`);
  });
  // A new field: `node test/replay/writeHistory.ts NAME-events --every-event` with a new NAME.
  expect(missing).toEqual([]);
});

describe('the record of what histories fold to', () => {
  it('is what they fold to: other values need another FOLD_VERSION', async () => {
    expect(foldProblem(recordedFold(), await foldNow())).toBeNull();
  });

  const record = (foldVersion: number, fields: FoldRecord['histories'][string]): FoldRecord => ({
    foldVersion,
    histories: { '1.0.0': fields },
  });

  it('refuses another value of a field at the same version, and says what to do', () => {
    expect(foldProblem(record(6, { course: 'a', plans: 'b' }), record(6, { course: 'c', plans: 'b' }))).toMatch(
      /1\.0\.0: course\n.*Mend the fold.*set FOLD_VERSION.*to 7.*writeFold/s,
    );
  });

  it('is written again for another version, and for a new field', () => {
    expect(foldProblem(record(6, { course: 'a' }), record(7, { course: 'c' }))).toMatch(
      /^test\/histories\/fold.json .*writeFold/,
    );
    expect(foldProblem(record(6, { course: 'a' }), record(6, { course: 'a', pace: 'b' }))).toMatch(/lacks .* a field/);
  });
});
