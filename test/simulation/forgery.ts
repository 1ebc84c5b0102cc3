/** Messages that users of NATS can publish and must not: garbage, and events of others. */
import { type Family, familiesOf, type Service } from '@kronos/contracts';
import type { StoredMessage } from '@kronos/eventlog/simulated';
import type { Chance } from './chance.ts';

const encoder = new TextEncoder();

/** How the message ids of forged messages begin: the checker knows them by it. */
export const FORGED = 'forged-';

export interface Forgery {
  readonly family: Family;
  readonly body: Uint8Array;
}

const users: readonly Service[] = ['scorer', 'planner', 'executor', 'ledger', 'operator', 'custodian'];

const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/**
 * One message. Events of others are real ones, on a subject where their type does not belong: published by a user that
 * may publish there.
 *
 * @param seen one stored message of each type; `unreadable`: of those without one
 */
export function forge(chance: Chance, seen: ReadonlyMap<string, StoredMessage>): Forgery {
  const family = chance.pick(familiesOf(chance.pick(users)).filter((each) => each !== 'services'));
  const foreign = [...seen].flatMap(([type, message]) =>
    type === 'unreadable' || message.subject.split('.')[1] === family ? [] : [message],
  );
  const garbage = chance.pick(['', 'no JSON', '{}', '[]', 'null', deep(6000), '{"type":"cycle.decided","version":99}']);
  if (foreign.length === 0 || chance.flip(0.3)) return { family, body: encoder.encode(garbage) };
  const one = chance.pick(foreign);
  if (chance.flip(0.7)) return { family, body: one.data };
  const body = JSON.parse(new TextDecoder().decode(one.data)) as { data: object };
  return {
    family,
    body: encoder.encode(JSON.stringify({ ...body, data: { ...body.data, reason: JSON.parse(deep(2000)) } })),
  };
}
