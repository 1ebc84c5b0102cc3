import { expect, it } from 'vitest';
import { Chance } from './chance.ts';
import { forge } from './forgery.ts';

it('is made though the log has a message that nobody can read', () => {
  const empty = { sequence: 1, subject: 'kronos.controls.x', headers: undefined, data: new Uint8Array(), storedAt: 0 };
  const chance = new Chance('forgery');
  for (let i = 0; i < 200; i++) expect(forge(chance, new Map([['unreadable', empty]])).body).toBeInstanceOf(Uint8Array);
});
