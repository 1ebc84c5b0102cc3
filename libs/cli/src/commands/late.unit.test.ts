import { expect, it } from 'vitest';
import { takenText } from './late.ts';

it('no planner is blamed for a snapshot that was asked for to be recorded', () => {
  expect(takenText('snapshot', 'gpu-c1')).toBe('the snapshot gpu-c1 came later');
  for (const what of ['plan', 'decision'] as const)
    expect(takenText(what, 'gpu-c1')).toBe('the snapshot gpu-c1 was taken, and no planner has answered it');
});
