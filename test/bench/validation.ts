/**
 * Prints how fast messages are validated, as JSON: the generated validators beside the schemas themselves, over the recorded
 * histories. `node test/bench/validation.ts [--rounds N]`
 */
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { messagesByFamily, snapshotSchema, validator } from '@kronos/contracts';
import type { z } from 'zod';
import { recorded, recordedSnapshots } from '../../libs/contracts/testing/index.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '25' } } });
const rounds = Number(values.rounds);

const schemas = new Map<string, z.ZodType>(
  Object.values(messagesByFamily)
    .flat()
    .map((schema): [string, z.ZodType] => [schema.shape.type.value, schema]),
);
const median = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[all.length >> 1] ?? 0;
const timed = (act: () => void): number => {
  const began = performance.now();
  act();
  return performance.now() - began;
};

const validators = new Map([...schemas].map(([type, schema]) => [type, validator(schema)]));
const snapshots = validator(snapshotSchema);
const compileMs = timed(() => {
  for (const judge of validators.values()) judge(null);
});

const ways = {
  validator: () => {
    for (const event of recorded) validators.get(event.type)?.(event);
  },
  zod: () => {
    for (const event of recorded) schemas.get(event.type)?.safeParse(event);
  },
  validatorOfSnapshots: () => {
    for (const snapshot of recordedSnapshots) snapshots(snapshot);
  },
  zodOfSnapshots: () => {
    for (const snapshot of recordedSnapshots) snapshotSchema.safeParse(snapshot);
  },
};
type Way = keyof typeof ways;
const names = Object.keys(ways) as Way[];
const runs: Record<Way, number[]> = { validator: [], zod: [], validatorOfSnapshots: [], zodOfSnapshots: [] };
// In turn, so that what else the machine does falls on all of them.
for (let round = 0; round < rounds; round++) for (const name of names) runs[name].push(timed(ways[name]));

// The slowest refusal: a list of 200 KB with values of the wrong kind.
const decided = recorded.find(({ type }) => type === 'cycle.decided') as {
  readonly type: string;
  readonly data?: object;
};
const wrong = { ...decided, data: { ...decided.data, refused: Array(100_000).fill(0) } };
const refusals = {
  validator: timed(() => validators.get('cycle.decided')?.(wrong)),
  zod: timed(() => schemas.get('cycle.decided')?.safeParse(wrong)),
};

const [own, zod] = [median(runs.validator), median(runs.zod)];
process.stdout.write(
  `${JSON.stringify(
    {
      messages: recorded.length,
      snapshots: recordedSnapshots.length,
      types: schemas.size,
      compileMsPerType: Number((compileMs / schemas.size).toFixed(2)),
      messagesPerSecond: Math.round((recorded.length / own) * 1000),
      timesFasterThanZod: {
        messages: Number((zod / own).toFixed(1)),
        snapshots: Number((median(runs.zodOfSnapshots) / median(runs.validatorOfSnapshots)).toFixed(1)),
      },
      refusalMs: refusals,
    },
    null,
    2,
  )}\n`,
);
