import { z } from 'zod';
import { type ActingCall, actingAnswers, requests } from './commandSchemas.ts';
import { ACTING, CHANGES, endpoints, OPENAPI, PREFIX } from './endpoints.ts';
import { answers, type Operation, refusal } from './schemas.ts';

const json = (schema: object) => ({ 'application/json': { schema } });
const string = { type: 'string' } as const;

/** Refusals by status; each has the same body. */
const refusals = (descriptions: Readonly<Record<number, string>>): Readonly<Record<string, object>> =>
  Object.fromEntries(
    Object.entries(descriptions).map(([status, description]) => [
      status,
      { description, content: json({ $ref: '#/components/schemas/Refusal' }) },
    ]),
  );

const responses: Readonly<Record<string, object>> = {
  '304': { description: 'The client has this version (If-None-Match)' },
  ...refusals({
    400: 'A parameter is wrong',
    404: 'There is no such thing',
    410: 'It was recorded, and is no longer kept',
    421: 'The Host header names no host of this service',
    503: 'Too many requests at once; Retry-After says when to ask again',
  }),
};

const actingRefusals = refusals({
  400: 'The body is wrong',
  401: 'Nobody is logged in, or Keystone refuses the credentials',
  403: 'The role is missing, or the request does not come from a page of this console',
  409: 'What was confirmed has changed, or the state does not allow it. Nothing was appended',
  413: 'The body is too long',
  415: 'The body is not JSON',
  429: 'Too many requests; Retry-After says when to ask again',
  503: 'Keystone or the event log does not answer',
});

const schemaOf = (schema: z.ZodType): object => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'output' });
  return rest;
};

/** A call of people who log in: it changes something, or tells who they are. */
function actingOperation(call: ActingCall, summary: string): object {
  const body = call in requests ? requests[call as keyof typeof requests] : null;
  const csrf = call === 'session' || call === 'logIn' ? [] : ['X-Kronos-Csrf'];
  const headers = call === 'session' ? [] : ['Origin', ...csrf];
  const texts: Readonly<Record<string, string>> = {
    Origin: 'The address of the console; a page of another address is refused',
    'X-Kronos-Csrf': '`csrf` of the session',
  };
  return {
    operationId: call,
    summary,
    parameters: headers.map((name) => ({
      name,
      in: 'header',
      required: true,
      description: texts[name],
      schema: string,
    })),
    ...(body === null ? {} : { requestBody: { required: true, content: json(schemaOf(body)) } }),
    responses: {
      '200': { description: summary, content: json({ $ref: `#/components/schemas/${titleOf(call)}` }) },
      ...(call === 'session' ? {} : actingRefusals),
    },
  };
}

const actingPaths = () => ({
  [ACTING.session]: {
    get: actingOperation('session', 'Who is logged in, and whether people can log in at all'),
    post: actingOperation('logIn', 'Log in with Keystone; the answer sets the cookie of the session'),
    delete: actingOperation('logOut', 'End the session and its token'),
  },
  [ACTING.foresee]: { post: actingOperation('foresee', 'What a command would do now. Nothing is changed') },
  [ACTING.give]: { post: actingOperation('give', 'Give a command that the person has confirmed') },
});

const operations = Object.keys(endpoints) as Operation[];
const titleOf = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

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
      '200': { description: summary, content: json({ $ref: `#/components/schemas/${titleOf(operation)}` }) },
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
      'Read-only, except for people who log in to the console: `session` and `commands`, with [console] acting only. Times are ISO-8601 UTC; path segments are percent-encoded. Answers have an entity tag, in which the field `time` (the ' +
      "ledger's clock) does not count: ask with If-None-Match. Compressed with br or gzip where the client takes it.",
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  paths: {
    ...Object.fromEntries(
      operations.map((operation) => [`${PREFIX}${endpoints[operation].path}`, { get: operationOf(operation) }]),
    ),
    ...actingPaths(),
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
      ...Object.fromEntries(operations.map((operation) => [titleOf(operation), schemaOf(answers[operation])])),
      ...Object.fromEntries(
        (Object.keys(actingAnswers) as ActingCall[]).map((call) => [titleOf(call), schemaOf(actingAnswers[call])]),
      ),
      Refusal: z.toJSONSchema(refusal),
    },
  },
});
