import { z } from 'zod';
import { CHANGES, endpoints, OPENAPI, PREFIX } from './endpoints.ts';
import { answers, type Operation, refusal } from './schemas.ts';

const json = (schema: object) => ({ 'application/json': { schema } });
const string = { type: 'string' } as const;

const responses: Readonly<Record<string, object>> = {
  '304': { description: 'The client has this version (If-None-Match)' },
  ...Object.fromEntries(
    [
      [400, 'A parameter is wrong'],
      [404, 'There is no such thing'],
      [410, 'It was recorded, and is no longer kept'],
      [421, 'The Host header names no host of this service'],
      [503, 'Too many requests at once; Retry-After says when to ask again'],
    ].map(([status, description]) => [
      String(status),
      { description, content: json({ $ref: '#/components/schemas/Refusal' }) },
    ]),
  ),
};

const operations = Object.keys(endpoints) as Operation[];
const title = (operation: Operation): string => operation.charAt(0).toUpperCase() + operation.slice(1);

function operationOf(operation: Operation): object {
  const { path, summary, query = {} } = endpoints[operation];
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: string })),
    ...Object.entries(query).map(([name, description]) => ({ name, in: 'query', description, schema: string })),
  ];
  return {
    operationId: operation,
    summary,
    parameters,
    responses: {
      '200': { description: summary, content: json({ $ref: `#/components/schemas/${title(operation)}` }) },
      ...responses,
    },
  };
}

/** The OpenAPI 3.1 document of the JSON interface. */
export const openApi = () => ({
  openapi: '3.1.0',
  info: {
    title: 'Kronos ledger',
    version: '1',
    description:
      'Read-only. Times are ISO-8601 UTC; path segments are percent-encoded. Answers have an entity tag, in which the field `time` (the ' +
      "ledger's clock) does not count: ask with If-None-Match. Compressed with br or gzip where the client takes it.",
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  paths: {
    ...Object.fromEntries(
      operations.map((operation) => [`${PREFIX}${endpoints[operation].path}`, { get: operationOf(operation) }]),
    ),
    [CHANGES]: {
      get: {
        operationId: 'changes',
        summary:
          'Server-sent events. `change`: an event was folded; its id is the log sequence. `reset`: events between the one that the ' +
          'client has and the oldest in memory are not sent, so everything must be read again',
        parameters: [
          {
            name: 'Last-Event-ID',
            in: 'header',
            description: 'Sequence of the last event that the client has: what followed is sent first',
            schema: string,
          },
          { name: 'since', in: 'query', description: 'The same, for a first connection', schema: string },
        ],
        responses: {
          '200': { description: 'The events', content: { 'text/event-stream': { schema: string } } },
          '400': responses['400'],
          '503': responses['503'],
        },
      },
    },
    [OPENAPI]: {
      get: {
        operationId: 'openapi',
        summary: 'This document',
        responses: { '200': { description: 'This document', content: json({ type: 'object' }) } },
      },
    },
  },
  components: {
    schemas: {
      ...Object.fromEntries(
        operations.map((operation) => {
          const { $schema: _, ...schema } = z.toJSONSchema(answers[operation], { io: 'output' });
          return [title(operation), schema];
        }),
      ),
      Refusal: z.toJSONSchema(refusal),
    },
  },
});
