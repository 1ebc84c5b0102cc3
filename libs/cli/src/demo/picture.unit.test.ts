import { expect, it } from 'vitest';
import { picture } from './picture.ts';

it('draws no more lines than the screen has, so that the next picture covers all of them', () => {
  let written = '';
  const out = (text: string) => {
    written += text;
  };
  const { show } = picture({
    out,
    err: () => undefined,
    steer: (_, sequence) => out(sequence),
    colour: false,
    columns: 80,
    rows: 4,
    live: true,
  });
  const lines = ['a', 'b', 'c', 'd', 'e'];
  show(lines);
  show(lines);
  expect(written).not.toContain('d');
  expect(written).toContain('\u001b[3A');
});
