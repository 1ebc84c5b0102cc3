import { expect, it } from 'vitest';
import { courseText } from './course.ts';

it.each([
  [
    { moves: 31, cycles: 4, seconds: 2400, reaches: true },
    '31 moves in about 4 cycles (40 min) are left until every policy is at its target',
  ],
  [
    { moves: 1, cycles: 1, seconds: 45, reaches: false },
    '1 move in about 1 cycle (45 s) is left until the lowest imbalance that was found',
  ],
  [
    { moves: 4, cycles: 2, seconds: 700, reaches: true, neededBudget: 2 },
    '4 moves are left until every policy is at its target: the first of them need max_migrations_per_cycle = 2',
  ],
])('%j in words', (course, text) => expect(courseText(course)).toBe(text));
