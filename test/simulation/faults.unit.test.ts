import { type ActInput, openSim, parseScenario } from '@kronos/simcloud';
import { expect, it } from 'vitest';
import { Chance } from './chance.ts';
import { SimulatedRecord } from './cloudRecord.ts';
import { kinds } from './faults.ts';
import { cloudActs } from './stage/cloud.ts';
import type { Stage } from './stage/stage.ts';
import { serverSettings } from './windows.ts';

/** What a kind of fault does to the cloud, over many draws. */
function actsOf(kind: string): ActInput[] {
  const acts: ActInput[] = [];
  const stage: Partial<Stage> = {
    act(act) {
      acts.push(act);
      return null;
    },
  };
  for (let draw = 0; draw < 500; draw++) kinds[kind]?.act(stage as Stage, new Chance(`${kind}/${draw}`));
  return acts;
}

it.each(['api-status', 'post-unknown'])('%s: what is answered with 4xx was not carried out', (kind) => {
  const effects = actsOf(kind).flatMap((act) => (act.act === 'faultApi' ? [act.fault.effect] : []));
  const statuses = effects.filter((effect) => effect.kind === 'status');
  expect(statuses.filter(({ processed }) => processed === true).length).toBeGreaterThan(0);
  expect(statuses.filter(({ status, processed }) => status < 500 && processed === true)).toEqual([]);
});

it.each(['metadata', 'tags'] as const)(
  'person-excludes: a server is opted out and in again, and its own windows in its %s stay',
  (how) => {
    const own = serverSettings([{ days: null, fromMinute: 60, toMinute: 120 }], how);
    const scenario = parseScenario({
      hosts: [{ name: 'a' }],
      flavors: [{ name: 'small', vcpus: 1, memoryMb: 512, diskGb: 1 }],
      servers: [{ name: 'vm', host: 'a', flavor: 'small', ...own }],
    });
    const sim = openSim({ scenario, seed: 1, clock: { now: () => 0 }, after: () => () => undefined });
    const kept = () => sim.cloud.server('vm');
    const { tags, metadata } = kept();
    const after: (() => void)[] = [];
    const stage: Partial<Stage> = {
      ...cloudActs(sim, new SimulatedRecord(sim.cloud, scenario), scenario),
      after: (_, act) => void after.push(act),
    };
    const ways = new Set<string>();
    for (let draw = 0; draw < 20; draw++) {
      kinds['person-excludes']?.act(stage as Stage, new Chance(`excludes/${draw}`));
      const out = kept();
      if (out.tags.includes('kronos:exclude')) ways.add('tag');
      if (out.metadata['kronos:exclude'] === 'yes') ways.add('metadata');
      expect(out.tags).toEqual(expect.arrayContaining([...tags]));
      expect(out.metadata).toMatchObject(metadata);
      after.pop()?.();
      expect({ tags: kept().tags, metadata: kept().metadata }).toEqual({ tags, metadata });
    }
    expect(ways).toEqual(new Set(['tag', 'metadata']));
  },
);
