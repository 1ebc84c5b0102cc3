import { expect, it } from 'vitest';
import { recorded } from '../testing/index.ts';
import { logEventTypes } from './authority.ts';
import type { Message } from './messages.ts';
import { clause } from './phrases.ts';
import { sentence } from './sentence.ts';

it.each([
  ['The VM is locked.', 'the VM is locked'],
  ['A proposed plan waits for an answer.', 'a proposed plan waits for an answer'],
  ['Nova cannot live-migrate a VM with a vGPU.', 'Nova cannot live-migrate a VM with a vGPU'],
  ['VM web-1 is gone', 'VM web-1 is gone'],
  ['', ''],
])('%j within a sentence', (text, expected) => expect(clause(text)).toBe(expected));

it('every event of the recorded histories has a sentence without holes', () => {
  const types = new Set<string>();
  for (const event of recorded) {
    const text = sentence(event as Message);
    expect(text, event.type).toMatch(/^\S.*\S$/s);
    expect(text, event.type).not.toMatch(/undefined|\[object|NaN/);
    types.add(event.type);
  }
  expect(logEventTypes.filter((type) => !types.has(type))).toEqual([]);
});
