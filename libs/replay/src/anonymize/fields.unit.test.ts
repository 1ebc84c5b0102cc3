import { type LogEvent, logEventSchema, type Snapshot, snapshotSchema } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { anonymizer } from './anonymizer.ts';

/** The parts of a JSON Schema that the messages have. */
type Schema = {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
};

/**
 * Fields of events that hold no names, or only names of policies: the ends of their paths. A sentence has names that are learnt
 * elsewhere.
 */
const KEPT = new RegExp(
  `\\.(${[
    // Ids of Kronos's own, versions, digests.
    'id|correlationId|causationId|commandId|taskId|planId|snapshotId|dependsOn|drainId|installationId',
    'version|plannerVersion|digests\\.\\w+|optionsDigest|shape|mark|details\\.\\w+',
    // Words of Kronos, of Nova and of Placement; sentences and their figures.
    'code|errorType|cause|status|text|detail\\.\\w+|requiredTraits|forbiddenTraits|resources\\.key|refusals\\.key',
    // Policies, their labels, and the planner's options.
    'policy|weights\\.key|alternateWeights\\.key|loads\\.\\w+\\.key',
    'options\\.(windows|blackouts|timezone\\.name)',
  ].join('|')})$`,
);

/** A value with every field of a schema. A text that may be anything says which field it is. */
function filled(schema: Schema, path: string): unknown {
  const { properties, items, additionalProperties } = schema;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return filled(choices.find(({ type }) => type !== 'null') ?? {}, path);
  const [type] = [schema.type].flat().filter((one) => one !== 'null');
  if (type === 'object') {
    const own = Object.entries(properties ?? {}).map(([key, one]) => [key, filled(one, `${path}.${key}`)]);
    return Object.fromEntries(
      typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0
        ? [...own, [`Secret${path}.key`, filled(additionalProperties, `${path}.value`)]]
        : own,
    );
  }
  if (type === 'array') return [filled(items ?? {}, path)];
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return 1;
  return schema.format === 'date-time' ? '2026-01-05T00:00:00.000Z' : `Secret${path}`;
}

const markersIn = (value: unknown): string[] => JSON.stringify(value).match(/Secret[\w.]+/g) ?? [];

const schemaOf = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: 'input' }) as Schema;

it('leaves no name of any field of any event, also where its snapshot is not kept', () => {
  const { oneOf: types = [] } = schemaOf(logEventSchema);
  expect(types.length).toBeGreaterThan(30);
  const found = types.flatMap((type) => {
    const event = filled(type, '') as LogEvent;
    const names = anonymizer();
    names.learnEvent(event);
    names.settle();
    return markersIn(names.event(event))
      .filter((path) => !KEPT.test(path))
      .map((path) => `${event.type}: ${path}`);
  });
  expect(found).toEqual([]);
});

it('leaves nothing of what a decision quotes of its snapshot', () => {
  const { oneOf: types = [] } = schemaOf(logEventSchema);
  const decided = types.map((type) => filled(type, '') as LogEvent).find(({ type }) => type === 'cycle.decided');
  if (decided?.type !== 'cycle.decided') throw new Error('no decision');
  const text = 'no value of the label "host" is known to Nova; its values: acme-1';
  const quoting = ['snapshot-problems', 'no-forecast', 'policy-partial'].map((code) => ({ code, text }));
  const [reason = expect.fail('none')] = quoting;
  const names = anonymizer();
  names.settle();
  const { data } = names.event({ ...decided, data: { ...decided.data, reason, warnings: quoting } });
  expect([data.reason, ...data.warnings].map((one) => one.text)).toEqual([
    'snapshot problems',
    'snapshot problems',
    'no forecast',
    'policy partial',
  ]);
});

/** Texts of a snapshot that name nobody. A person who adds one says so in `snapshot.ts`, and here. */
const OF_A_SNAPSHOT = [
  // The id of a command, policies, and labels of metrics.
  'capacity.commandId',
  'policies.hostLabel',
  'policies.name',
  'policies.vmProfileLabel',
  'profileSums.policy',
  'scores.policies.policy',
  'forecast.readings.label',
  'hostReadings.label',
  'moveCostReadings.label',
  'vmReadings.label',
  // Words of Kronos.
  'notes.code',
  'problems.code',
  'scores.policies.reason.code',
  // Words of Nova and Neutron.
  'hosts.hypervisorType',
  'migrations.status',
  'migrations.type',
  'servers.status',
  'servers.taskState',
  'servers.vmState',
  'servers.vnicTypes',
  // Of traits and resource classes only those that begin with CUSTOM_ are an operator's.
  'capacity.asked.shape.forbiddenTraits',
  'capacity.asked.shape.requiredTraits',
  'capacity.asked.shape.resources.key',
  'hosts.inventory.key',
  'hosts.traits',
  'policies.allocation',
  'policies.resourceClass',
  'scores.policies.sizes.resourceClass',
  'servers.resources.key',
];

describe.each(['learnt', 'not learnt'])('a snapshot whose names are %s', (how) => {
  it('keeps only texts that name nobody', () => {
    const snapshot = filled(schemaOf(snapshotSchema), '') as Snapshot;
    const names = anonymizer();
    if (how === 'learnt') names.learnSnapshot(snapshot);
    names.settle();
    const kept = new Set(markersIn(names.snapshot(snapshot)).map((path) => path.replace('Secret.', '')));
    // Nothing is known of an id that does not begin with the name of an aggregate.
    expect([...kept].sort()).toEqual([...OF_A_SNAPSHOT, 'id'].sort());
  });
});

it('keeps the cells that new VMs need', () => {
  const { capacity } = filled(schemaOf(snapshotSchema), '') as Snapshot;
  const snapshot = filled(schemaOf(snapshotSchema), '') as Snapshot;
  const names = anonymizer();
  names.settle();
  expect(names.snapshot(snapshot).capacity?.asked.shape.cells).toEqual(capacity?.asked.shape.cells);
});
