import { systemClock } from '@kronos/clock';
import type { TailOptions } from '@kronos/eventlog';
import { createLogger } from '@kronos/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ledgerBed } from '../../testing/index.ts';
import { type Aside, createAside } from '../aside/aside.ts';
import { type NameKeeper, nameKeeper } from './nameKeeper.ts';

const NOW_MS = Date.now();
const sketch = (vm: string) => ({
  policies: { cpu: {} },
  hosts: { h1: {}, h2: {} },
  vms: { [vm]: { host: 'h1', w: { cpu: 0.3 } } },
});

let bed: Awaited<ReturnType<typeof ledgerBed>>;
let aside: Aside;
let keeper: NameKeeper;
let ms: number;
/** Bodies of snapshots that were read. */
let reads: number;
/** Whether reading one fails. */
let broken: boolean;
let look: () => void;
/** Ends the wait for the next snapshot that was taken note of. */
let noted: PromiseWithResolvers<void>;

beforeEach(async () => {
  bed = await ledgerBed();
  aside = createAside();
  ms = 0;
  reads = 0;
  broken = false;
  look = () => undefined;
  noted = Promise.withResolvers();
  const { log } = bed;
  keeper = nameKeeper({
    log: {
      async *tail(options: TailOptions) {
        for await (const one of log.tail(options)) {
          yield one;
          if (options.end === true) continue;
          noted.resolve();
          noted = Promise.withResolvers();
        }
      },
      objects: {
        get(ref) {
          reads++;
          if (broken) return Promise.reject(new Error('broken'));
          return log.objects.get(ref);
        },
      },
    },
    aside,
    aggregates: () => ['gpu', 'general'],
    clock: {
      monotonic: () => ms,
      every(_, act) {
        look = act;
        return () => undefined;
      },
      sleep: systemClock.sleep,
    },
    logger: createLogger({ service: 'ledger', version: '0', level: 'silent' }),
  });
});
afterEach(async () => {
  keeper.close();
  await aside.close();
  await bed.close();
});

async function arrives(id: string, aggregate: string, timeMs: number, vm: string): Promise<void> {
  const arrived = noted.promise;
  await bed.observed(id, aggregate, timeMs, sketch(vm));
  await arrived;
}

const found = async (query: string): Promise<string[]> =>
  (await keeper.find(query, 10)).found.map(({ aggregate, name }) => `${aggregate}/${name}`);

describe('the names of hosts and VMs', () => {
  it('are those of the newest snapshots, and a search reads none of them again', async () => {
    await bed.observed('s1', 'gpu', NOW_MS, sketch('old-vm'));
    await bed.observed('s2', 'gpu', NOW_MS + 1000, sketch('new-vm'));
    await bed.observed('s3', 'web eu/1', NOW_MS, sketch('strange-vm'));
    await keeper.start();
    expect(reads).toBe(1);
    expect(await found('vm')).toEqual(['gpu/new-vm']);
    expect(reads).toBe(1);
  });

  it('are given by uuid, and only those that a newest snapshot has', async () => {
    await bed.observed('s1', 'gpu', NOW_MS, sketch('one-vm'));
    await bed.observed('s2', 'general', NOW_MS, sketch('other-vm'));
    expect([...(await keeper.named(['other-vm', 'gone-vm']))]).toEqual([['other-vm', 'other-vm']]);
    expect((await keeper.named([])).size).toBe(0);
  });

  it('are read by the first search where nobody read them before', async () => {
    await bed.observed('s1', 'gpu', NOW_MS, sketch('first-vm'));
    expect(await found('vm')).toEqual(['gpu/first-vm']);
  });

  it('follow new snapshots, at most once a minute for each aggregate', async () => {
    const again = noted.promise;
    await bed.observed('s1', 'gpu', NOW_MS, sketch('old-vm'));
    await keeper.start();
    await again;
    await arrives('s2', 'gpu', NOW_MS + 1000, 'new-vm');
    await arrives('s3', 'general', NOW_MS + 1000, 'other-vm');
    ms = 59_999;
    look();
    expect(await found('vm')).toEqual(['gpu/old-vm', 'general/other-vm']);
    ms = 60_000;
    look();
    expect(reads).toBe(3);
    await expect.poll(() => found('vm')).toEqual(['gpu/new-vm', 'general/other-vm']);
    ms = 600_000;
    look();
    expect(reads).toBe(3);
  });

  it('are read again when the thread that had them has ended', async () => {
    await bed.observed('s1', 'gpu', NOW_MS, sketch('kept-vm'));
    await keeper.start();
    const ended = new Promise<void>((resolve) => aside.onEnd(resolve));
    await aside.close();
    await ended;
    expect(await found('vm')).toEqual(['gpu/kept-vm']);
    expect(reads).toBe(2);
  });

  it('are none of a snapshot that cannot be read, which is tried once a minute until it can', async () => {
    await bed.observed('s1', 'gpu', NOW_MS, sketch('broken-vm'));
    broken = true;
    await keeper.start();
    look();
    expect(await found('vm')).toEqual([]);
    expect(reads).toBe(1);
    broken = false;
    ms = 60_000;
    look();
    await expect.poll(() => found('vm')).toEqual(['gpu/broken-vm']);
    expect(reads).toBe(2);
  });
});
