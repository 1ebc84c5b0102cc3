import { z } from 'zod';
import { definitions } from './messages/list.ts';
import { messagesByFamily } from './messages.ts';
import { families } from './names.ts';
import { snapshotSchema } from './snapshot.ts';
import { defaultStorageLimits, streamDefinitions } from './streams.ts';

const SCHEMA_ROOT = 'https://kronos.invalid/schemas';

/** File name of a message's JSON Schema: type and version. */
const schemaFile = (type: string, version: number): string => `${type}.v${version}.json`;

const render = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const jsonSchema = (schema: z.ZodType, file: string, title: string): string =>
  render({
    $id: `${SCHEMA_ROOT}/${file}`,
    title,
    ...z.toJSONSchema(schema, { io: 'input', unrepresentable: 'throw' }),
  });

const familyTexts: Record<(typeof families)[number], { address: string; text: string; producer: string }> = {
  snapshots: { address: 'kronos.snapshots.{aggregate}', text: 'What was seen', producer: 'scorer' },
  plans: { address: 'kronos.plans.{aggregate}', text: 'What was decided', producer: 'planner' },
  migrations: { address: 'kronos.migrations.{aggregate}', text: 'Tasks to be done', producer: 'planner' },
  results: { address: 'kronos.results.{aggregate}', text: 'What happened', producer: 'executor' },
  controls: { address: 'kronos.controls.{aggregate}', text: 'What people asked', producer: 'operator' },
  ledger: { address: 'kronos.ledger.{aggregate}', text: 'Folded state', producer: 'ledger' },
  inventory: { address: 'kronos.inventory.{host}', text: 'Host to instances', producer: 'scorer' },
  custody: {
    address: 'kronos.custody.{aggregate}',
    text: 'Commands that skip unreadable events',
    producer: 'custodian',
  },
  alarms: { address: 'kronos.alarms.{alarm}', text: 'Alarms that were raised and resolved', producer: 'ledger' },
  services: { address: 'kronos.services.{service}.{instance}', text: 'Heartbeats', producer: 'service' },
};

/** AsyncAPI 3 document of all subjects; JetStream's facts stand in `x-jetstream`. */
function asyncApi(): unknown {
  const streams = streamDefinitions(defaultStorageLimits);
  const channels: Record<string, unknown> = {};
  const operations: Record<string, unknown> = {};
  const messages: Record<string, unknown> = {};
  for (const family of families) {
    const { address, text, producer } = familyTexts[family];
    const types = messagesByFamily[family].map((s) => ({ type: s.shape.type.value, version: s.shape.version.value }));
    for (const { type, version } of types)
      messages[type] = {
        name: type,
        contentType: 'application/json',
        payload: {
          schemaFormat: 'application/schema+json;version=draft-2020-12',
          schema: { $ref: `./${schemaFile(type, version)}` },
        },
      };
    const stream = streams.find((s) => s.subjects.includes(address.replaceAll(/\{[^}]*\}/g, '*')));
    const parameters = [...address.matchAll(/\{([^}]*)\}/g)].map(([, parameter = '']) => parameter);
    channels[family] = {
      address,
      description: text,
      parameters: Object.fromEntries(
        parameters.map((one) => [one, { description: `Name of the ${one} as one subject token (see names.ts)` }]),
      ),
      messages: Object.fromEntries(types.map(({ type }) => [type, { $ref: `#/components/messages/${type}` }])),
      'x-jetstream': {
        stream: stream?.name,
        retention: stream?.retention,
        discard: stream?.discard,
        denyDelete: stream?.denyDelete,
      },
    };
    operations[`${producer}.${family}`] = { action: 'send', channel: { $ref: `#/channels/${family}` } };
  }
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Kronos',
      version: '1.0.0',
      description:
        'Messages between the services of Kronos. One JSON object each; headers carry CloudEvents attributes and the trace context.',
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    channels,
    operations,
    components: { messages },
  };
}

/** A module for readers that go without the schemas, such as a browser. */
function addressees(): string {
  const all: readonly { readonly type: string; readonly addressesAll?: boolean }[] = Object.values(definitions).flat();
  const types = all.flatMap(({ type, addressesAll }) => (addressesAll === true ? [type] : [])).sort();
  return [
    '/** The types of which the aggregate may be `_all_`, from the definitions of the messages (npm run generate makes it). */',
    'export const addressAll: ReadonlySet<string> = new Set([',
    ...types.map((type) => `  '${type}',`),
    ']);\n',
  ].join('\n');
}

/** Generated modules, by path. */
export const generatedModules = (): [path: string, text: string][] => [
  ['libs/contracts/src/addressees.ts', addressees()],
];

/** Every generated file of libs/contracts/schemas, by name. A test keeps the files equal to this. */
export function schemaFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const schema of Object.values(messagesByFamily).flat()) {
    const file = schemaFile(schema.shape.type.value, schema.shape.version.value);
    files.set(file, jsonSchema(schema, file, schema.shape.type.value));
  }
  files.set(schemaFile('snapshot', 1), jsonSchema(snapshotSchema, schemaFile('snapshot', 1), 'snapshot'));
  files.set('asyncapi.json', render(asyncApi()));
  return files;
}
