import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StoredEvent } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { anonymizer } from './anonymizer.ts';

/** A history with every type of event of the log: its names, and what people wrote in it. */
const HISTORY = join(import.meta.dirname, '../../../../test/histories/0.1.1-events/log.jsonl');
const NAMES = /\b(vm\d+|[hn]\d|ada|carol|gpu|small2?|old racks|broken disk|garbage)\b/;

it('no name and no text of a person is left in any type of event', () => {
  const events = readFileSync(HISTORY, 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as StoredEvent).event);
  const names = anonymizer();
  for (const event of events) names.learnEvent(event);
  names.settle();
  const found = events.flatMap((event) => {
    const match = NAMES.exec(JSON.stringify(names.event(event)));
    return match === null ? [] : [`${event.type}: ${match[0]}`];
  });
  expect(NAMES.test(JSON.stringify(events))).toBe(true);
  expect(found).toEqual([]);
});
