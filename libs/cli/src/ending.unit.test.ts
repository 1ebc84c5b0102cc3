import { expect, it } from 'vitest';
import { endWhenWritten } from './ending.ts';

it('a command that something keeps alive ends once its output is written', () => {
  const output = { writableLength: 5 };
  let ends = 0;
  let act: (() => void) | null = null;
  endWhenWritten(
    () => {
      ends++;
    },
    [output, { writableLength: 0 }],
    (look) => {
      act = look;
      return () => {
        act = null;
      };
    },
  );
  const look = () => act?.();
  look();
  expect(ends).toBe(0);
  output.writableLength = 0;
  look();
  expect(ends).toBe(1);
  look();
  expect([ends, act]).toEqual([1, null]);
});
