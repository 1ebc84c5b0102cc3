import type { ActInput } from '@kronos/simcloud';
import { expect, it } from 'vitest';
import { Chance } from './chance.ts';
import { kinds } from './faults.ts';
import type { Stage } from './stage/stage.ts';

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
