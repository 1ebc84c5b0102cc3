import { expect, it } from 'vitest';
import { answerAt, type SeriesWindow } from './readSeries.ts';

it('the first step of a window knows the last one of the window before, of however many series', () => {
  const many = 150_000;
  const window = (startMs: number, values: SeriesWindow['series'][number][1]): SeriesWindow => ({
    query: 'load',
    startMs,
    stepMs: 60_000,
    points: 2,
    series: Array.from({ length: many }, (_, i) => [{ vm: String(i) }, values] as const),
    lost: [],
    warned: [],
  });
  const { samples, recent } = answerAt(window(120_000, [null, 3]), 0, {
    before: window(0, [1, 2]),
    withBefore: true,
  });
  expect(samples).toEqual([]);
  expect(recent).toHaveLength(many);
  expect(recent[0]).toEqual({ labels: { vm: '0' }, samples: [{ timeMs: 60_000, value: 2 }] });
});
