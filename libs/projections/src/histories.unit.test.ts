import { readdirSync, readFileSync } from 'node:fs';
import { readLogEvent, type StoredEvent } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { canonicalState } from './checkpoint.ts';
import { fold } from './evolve.ts';

/** Logs as earlier versions wrote them, and the facts that they meant. Neither is ever changed: new ones are added. Facts of later versions are not in them. */
const DIR = new URL('../histories/', import.meta.url);
const recorded = readdirSync(DIR)
  .filter((name) => name.endsWith('.jsonl'))
  .map((name) => name.replace('.jsonl', ''));

describe('a log that an earlier version wrote', () => {
  it.each(recorded)('is read and folded to the same facts: %s', (name) => {
    const lines = readFileSync(new URL(`${name}.jsonl`, DIR), 'utf8')
      .trimEnd()
      .split('\n');
    const events = lines.map((line): StoredEvent => {
      const { sequence, storedAt, body } = JSON.parse(line) as { sequence: number; storedAt: number; body: unknown };
      const { aggregate } = body as { aggregate: string };
      return { sequence, storedAt, event: readLogEvent(body, aggregate) };
    });
    expect(events.filter(({ event }) => event.type === 'unreadable')).toEqual([]);
    const facts: unknown = JSON.parse(readFileSync(new URL(`${name}.state.json`, DIR), 'utf8'));
    expect(JSON.parse(canonicalState(fold(events)))).toMatchObject(facts as object);
  });
});
