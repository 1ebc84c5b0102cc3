import { expect, it } from 'vitest';

const { copiedMb } = await import(new URL('./sizes.js', import.meta.url).href);

it('the size of a move counts the local disk with the memory', () => {
  expect(copiedMb({ ramMb: 2048, diskGb: 20 })).toBe(22_528);
});
