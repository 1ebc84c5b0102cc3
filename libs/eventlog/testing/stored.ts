import type { StoredEvent } from '@kronos/contracts';
import { encodeMessage } from '../src/log/append.ts';
import type { RawEvent } from '../src/wire/types.ts';

/**
 * Events of the past as `restore` takes them: put on a log, they keep the server's timestamps that they had. Events that
 * cannot be read are left out, and what follows moves up.
 */
export const rawEvents = (events: Iterable<StoredEvent>): RawEvent[] =>
  [...events]
    .flatMap(({ storedAt, event }) => (event.type === 'unreadable' ? [] : [{ storedAt, event }]))
    .map(({ storedAt, event }, i) => {
      const { subject, body, headers } = encodeMessage(event);
      const values = [...headers.keys()].map((key): [string, string] => [key, headers.get(key)]);
      return { sequence: i + 1, storedAt, subject, headers: Object.fromEntries(values), data: body };
    });
