import { ALL, isoTimeSchema } from '@kronos/contracts';
import { z } from 'zod';

/** Requests and answers of the calls that change something. The OpenAPI document is made from them. */

const name = z.string().min(1).max(255);
const address = name.describe(`An aggregate in scope, or ${ALL}`);
const steps = z.array(z.int().min(1).max(100_000)).min(1).max(500).nullable().describe('null: all of them');
const one = <C extends string, S extends z.ZodRawShape>(command: C, shape: S) =>
  z.strictObject({ command: z.literal(command), ...shape });

/** A command, as the kronos command of the same name. */
const command = z.discriminatedUnion('command', [
  one('pause', { aggregate: address }),
  one('resume', { aggregate: address }),
  one('evaluate', { aggregate: address }),
  one('record', { aggregate: address }),
  one('approve', { planId: name, steps }),
  one('reject', { planId: name, steps }),
  one('cancel', { taskId: name }),
  one('abort', { taskId: name }),
  one('close', { taskId: name, force: z.boolean() }),
  one('confirm', { taskId: name }),
  one('revert', { taskId: name }),
  one('quarantine', {
    aggregate: name,
    serverId: name,
    seconds: z.union([z.literal(-1), z.number().positive().max(1e9)]).describe('-1: until it is released'),
  }),
  one('release', { serverId: name }),
  one('drain', { aggregate: name, host: name }),
  one('undrain', { host: name }),
  one('skip', {
    sequence: z.int().min(1).describe('The first unreadable event'),
    through: z.int().min(1).describe('The last one'),
    force: z.boolean().describe('Also events that a newer version of Kronos may read'),
  }),
  one('cellsPlan', {
    aggregate: name.describe('The aggregate whose servers leave'),
    host: name.nullable().describe('Only servers of this host of it; null: of all'),
    to: name.describe('The aggregate of another cell that they go to'),
    flavorMap: z.record(name, name).describe('Old flavor to new flavor: these servers are resized'),
    servers: z.array(name).min(1).max(1_000).nullable().describe('Only these servers, by uuid or name; null: all'),
    project: name.nullable().describe('Only servers of this project; null: of all'),
    limit: z.int().min(1).max(100_000).nullable().describe('At most this many moves; null: as many as a plan holds'),
  }),
]);
export type CommandRequest = z.infer<typeof command>;

const secret = z.string().min(1).max(1024);

export const requests = {
  logIn: z.discriminatedUnion('method', [
    z.strictObject({
      method: z.literal('password'),
      userName: name,
      userDomainName: name.optional(),
      password: secret,
    }),
    z.strictObject({ method: z.literal('applicationCredential'), id: name, secret }),
  ]),
  foresee: z.strictObject({ command }),
  give: z.strictObject({
    command,
    digest: z.string().max(100).describe('`digest` of the answer that the person confirmed'),
    comment: z.string().max(1_000).nullable().describe('A skip needs one: its reason, which is shown permanently'),
  }),
} as const;

const session = z.strictObject({
  acting: z.boolean().describe('Whether people can log in: [console] acting'),
  userDomainName: z.string().nullable().describe('Domain of those who name none'),
  cells: z.array(z.string()).describe('Aggregates between which moves can be planned: [cells] aggregates'),
  custodian: z.boolean().describe('Whether this person may skip unreadable events: [console] custodian_roles'),
  person: z.string().nullable().describe('Who is logged in; null: nobody'),
  csrf: z.string().nullable().describe('Value of the header X-Kronos-Csrf of further requests'),
  until: isoTimeSchema.nullable().describe('When the session ends if it is not used'),
});

const effect = z.enum(['done', 'unchanged', 'refused']);

export const actingAnswers = {
  session,
  logIn: session,
  logOut: session,
  foresee: z.strictObject({
    effect,
    says: z.array(z.string()).describe('What would happen'),
    planId: z.string().nullable(),
    digest: z.string(),
  }),
  give: z.strictObject({
    effect,
    text: z.string().describe('What it did, by the log'),
    command: z.string().describe('Type of the event'),
    commandId: z.string(),
    aggregate: z.string(),
    sequence: z.int(),
    by: z.string(),
    time: isoTimeSchema,
  }),
} as const;
export type ActingCall = keyof typeof actingAnswers;
/** The answer to a call. */
export type ActingAnswer<C extends ActingCall> = z.infer<(typeof actingAnswers)[C]>;
