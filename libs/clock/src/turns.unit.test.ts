import { expect, it } from 'vitest';
import { Turns } from './turns.ts';

it('acts with the same key come one after the other, also after one that failed, and others do not wait', async () => {
  const turns = new Turns();
  const first = Promise.withResolvers<string>();
  const done: string[] = [];
  const act = (name: string, until: Promise<string>) => async () => {
    done.push(`begin ${name}`);
    await until.finally(() => done.push(`end ${name}`));
    return name;
  };
  const one = turns.take('a', act('one', first.promise));
  const two = turns.take('a', act('two', Promise.resolve('')));
  expect(await turns.take('b', act('other', Promise.resolve('')))).toBe('other');
  expect(done).toEqual(['begin one', 'begin other', 'end other']);
  first.reject(new Error('no'));
  await expect(one).rejects.toThrow('no');
  expect(await two).toBe('two');
  expect(done.slice(3)).toEqual(['end one', 'begin two', 'end two']);
});
