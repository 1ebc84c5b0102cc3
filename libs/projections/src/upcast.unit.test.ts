import type { LogEvent } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { testLog } from '../testing/index.ts';
import { type Upcasters, upcast, upcasters } from './upcast.ts';

describe('upcasting', () => {
  it('has nothing to do yet: there is one version of every event', () => {
    const event = testLog().paused();
    expect(upcasters.size).toBe(0);
    expect(upcast(event)).toBe(event);
  });

  it('takes an event from version to version up to the newest', () => {
    // To add one: contracts keep the schema of the old version beside the new one, and the registry says how the
    // old becomes the new. Here `instance.quarantined` had minutes in version -1, and no comment in version 0.
    const old = (version: number, data: object) =>
      ({ ...testLog().quarantined('vm1'), version, data }) as unknown as LogEvent;
    const registry: Upcasters = new Map([
      [
        'instance.quarantined/-1',
        (event) => {
          const { minutes, ...data } = event.data as unknown as { minutes: number };
          return { ...event, version: 0, data: { ...data, seconds: minutes * 60 } } as unknown as LogEvent;
        },
      ],
      [
        'instance.quarantined/0',
        (event) => ({ ...event, version: 1, data: { ...event.data, comment: null } }) as unknown as LogEvent,
      ],
    ]);
    const upgraded = upcast(old(-1, { commandId: 'c1', serverId: 'vm1', minutes: 2 }), registry);
    expect(upgraded).toMatchObject({
      version: 1,
      data: { commandId: 'c1', serverId: 'vm1', seconds: 120, comment: null },
    });
    const current = testLog().quarantined('vm1');
    expect(upcast(current, registry)).toBe(current);
  });
});
