import type { LogEvent } from '@kronos/contracts';
import { afterEach, describe, expect, it } from 'vitest';
import { here } from '../e2e/command.ts';
import { ended, ofType, released } from '../e2e/world.ts';
import { nightly } from '../nightly.ts';
import { defaultAsked } from '../simulation/asked.ts';
import { Chance } from '../simulation/chance.ts';
import { isOver } from '../simulation/people/operator.ts';
import type { Rule } from '../simulation/rules.ts';
import { simulate } from '../simulation/simulation.ts';
import { checkOut } from './checkout.ts';
import { openSite, SERVICES, type Site } from './site.ts';

/** Releases by their commit: `0.1.0` is the first one, and the other one is the newest. */
const RELEASES = { '0.1.0': 'c0f2960e', '1.0.0': '6bb1c760' } as const;
type Release = keyof typeof RELEASES;

/** Commits that fold the log in another way, or write other events; the first is 0.1.0 with one composition per service. */
const DRAWN = [
  ['b141e906', 7],
  ['cd950bad', 7],
  ['fcfa6c1c', 7],
  ['9e476478', 7],
  ['6bb1c760', 3],
  ['6bb1c760', 11],
] as const;
/** Rules that 0.1.0 itself breaks: it knows no windows, and reads a server at most once in two minutes while a task waits. */
const OF_ITS_TIME = new Set<Rule>(['unchecked', 'window']);

describe.skipIf(!nightly)('an upgrade in the simulation', { timeout: 900_000 }, () => {
  const totals = new Map<string, number>();
  it.each(DRAWN)('from %s and back at moments that seed %d draws, under faults', async (beside, seed) => {
    const { breaches, counts } = await simulate({ ...defaultAsked, beside, seed, days: 0.05, hosts: 5, vms: 20 });
    for (const [name, count] of Object.entries(counts)) totals.set(name, (totals.get(name) ?? 0) + count);
    console.log(JSON.stringify({ beside, seed, ...counts }));
    expect(breaches.filter(({ rule }) => !OF_ITS_TIME.has(rule))).toEqual([]);
  });

  // A single seed may draw few replacements.
  it('replaces services while moves are under way', () => {
    const of = (name: string): number => totals.get(name) ?? 0;
    console.log(JSON.stringify(Object.fromEntries(totals)));
    expect(of('replaced')).toBeGreaterThan(5 * DRAWN.length);
    expect(of('replaced with moves under way')).toBeGreaterThan(DRAWN.length);
    expect(of('finals')).toBeGreaterThan(5 * DRAWN.length);
  });
});

/** Services of a release beside those of this checkout, over one log. */
describe.skipIf(!nightly)('an upgrade', { timeout: 900_000 }, () => {
  let site: Site | undefined;
  afterEach(async () => {
    await site?.close();
    site = undefined;
  });

  /** All services of the release, and at least one move under way. */
  async function installed(release: Release, seed: number) {
    const root = await checkOut(RELEASES[release]);
    const opened = await openSite({ seed, speed: 2, root });
    site = opened;
    await opened.kronos(root, 'provisioner', 'provision');
    for (const service of SERVICES) await opened.replace(service, root);
    await opened.until('a move', (events) => ofType(events, 'migration.started').length > 0);
    return { root, site: opened };
  }

  /** The first steps of docs/runbook.md, Upgrades, while the old services run. */
  async function upgradeLog(of: Site): Promise<void> {
    await of.reload(here);
    await of.kronos(here, 'provisioner', 'provision');
    expect(await of.kronos(here, 'operator', 'config', 'check')).not.toContain('failed ');
  }

  const underWay = async (of: Site): Promise<number> =>
    (await of.migrations()).filter(({ status }) => !isOver(status)).length;

  it.each([
    ['0.1.0', 1],
    ['0.1.0', 2],
    ['1.0.0', 3],
  ] as const)(
    'from %s and back, one service at a time in an order drawn from seed %d, with moves under way',
    async (release, seed) => {
      const { root, site } = await installed(release, seed);
      const chance = new Chance(String(seed));
      const busy: number[] = [await underWay(site)];
      await upgradeLog(site);
      for (const to of [here, root, here])
        for (const service of chance.shuffle(SERVICES)) {
          busy.push(await underWay(site));
          const before = ofType(site.events, 'cycle.decided').length;
          await site.replace(service, to);
          await site.until('a decision', (events) => ofType(events, 'cycle.decided').length > before);
        }
      await site.until('the end of every move', settledAll);
      const migrations = await site.migrations();
      console.log(
        JSON.stringify({
          release,
          seed,
          underWay: busy,
          tasks: released(site.events).length,
          posts: migrations.length,
        }),
      );
      expect(busy.filter((count) => count > 0).length).toBeGreaterThan(3);
      expect(ofType(site.events, 'migration.started')).toHaveLength(migrations.length);
      expect(migrations.map(({ status }) => status)).toEqual(migrations.map(() => 'completed'));
      expect(
        ofType(site.events, 'migration.completed')
          .map(({ data }) => data.taskId)
          .sort(),
      ).toEqual(released(site.events).sort());
      expect(site.problems).toEqual([]);
    },
  );

  it('back to 0.1.0 with an event that it does not know: it plans nothing and names the event, and nothing is lost', async () => {
    const { root, site } = await installed('0.1.0', 4);
    await upgradeLog(site);
    for (const service of SERVICES) await site.replace(service, here);
    await site.until('the end of every move', settledAll);
    const [first] = await site.migrations();
    if (first === undefined) throw new Error('no migration');
    await site.kronos(here, 'operator', 'drain', first.source, '--yes');
    await site.until('a move of the drain', (events) => released(events).length > ended(events).size);
    for (const service of [...SERVICES].reverse()) await site.start(service, root);
    const unreadable = (events: readonly LogEvent[]) =>
      ofType(events, 'cycle.decided').filter(({ data }) => data.reason.code === 'unreadable-event');
    await site.until('decisions of 0.1.0 about it', (events) => unreadable(events).length > 1);
    const [one, two] = unreadable(site.events).map((event) => site.events.indexOf(event));
    expect(unreadable(site.events)[0]?.data.reason.text).toContain('host.drainAsked');
    expect(released(site.events.slice(one, two))).toEqual([]);
    const cycles = ofType(site.events, 'cycle.decided').length;
    for (const service of SERVICES) await site.replace(service, here);
    // An affinity group may keep VMs on the host for ever.
    await site.until('the end of the drain', (events) => {
      const after = ofType(events, 'cycle.decided').slice(cycles);
      return (
        over(events) && (ofType(events, 'host.drained').length === 1 || after.at(-1)?.data.reason.code === 'stuck')
      );
    });
    expect(ofType(site.events, 'migration.started')).toHaveLength((await site.migrations()).length);
    expect(site.problems).toEqual([]);
  });
});

function over(events: readonly LogEvent[]): boolean {
  const tasks = ended(events);
  return released(events).every((task) => tasks.has(task));
}

/** Every released task has ended, and the last decision found nothing to do. */
const settledAll = (events: readonly LogEvent[]): boolean =>
  over(events) && ofType(events, 'cycle.decided').at(-1)?.data.reason.code === 'balanced';
