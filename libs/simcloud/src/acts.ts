import { z } from 'zod';
import { apiFaultSchema, apis, hostFaultSchema, seriesFaultSchema, serverFaultSchema } from './faults.ts';
import {
  aggregateSchema,
  demandSchema,
  flavorSchema,
  groupSchema,
  hostSchema,
  portSchema,
  serverSchema,
} from './scenario.ts';

const name = z.string().min(1);
const api = z.enum([...apis, '*']);

/**
 * Everything that can be done to the cloud from outside its APIs: what operators and users do, what breaks, and the
 * simulation's own settings. Servers, groups and aggregates are named by id or by name.
 */
export const actSchema = z.discriminatedUnion('act', [
  // Acts of people.
  z.strictObject({ act: z.literal('createServer'), server: serverSchema }),
  z.strictObject({ act: z.literal('deleteServer'), server: name }),
  /** A person live-migrates a server; `host` null leaves the choice to the scheduler. */
  z.strictObject({ act: z.literal('migrateServer'), server: name, host: name.nullable().default(null) }),
  z.strictObject({ act: z.literal('lockServer'), server: name, reason: z.string().nullable().default(null) }),
  z.strictObject({ act: z.literal('unlockServer'), server: name }),
  z.strictObject({
    act: z.literal('setServer'),
    server: name,
    name: name.optional(),
    metadata: z.record(z.string(), z.string()).optional(),
    tags: z.array(name).optional(),
    pinnedZone: name.nullable().optional(),
    vmState: z.enum(['active', 'paused', 'stopped', 'error']).optional(),
    taskState: name.nullable().optional(),
    /** Nova's number: 0 NOSTATE, 1 RUNNING, 3 PAUSED, 4 SHUTDOWN. */
    powerState: z.int().min(0).optional(),
    ports: z.array(portSchema).optional(),
    demand: demandSchema.optional(),
  }),
  z.strictObject({ act: z.literal('addFlavor'), flavor: flavorSchema }),
  z.strictObject({ act: z.literal('addHost'), host: hostSchema }),
  z.strictObject({
    act: z.literal('setHost'),
    host: name,
    disabled: z.boolean().optional(),
    disabledReason: z.string().nullable().optional(),
    up: z.boolean().optional(),
    forcedDown: z.boolean().optional(),
    /** The version that nova-compute reports after an upgrade, as in the scenario. */
    hypervisorVersion: z.int().positive().optional(),
    /** A filler takes all that is left of the host, or gives it back. */
    full: z.boolean().optional(),
  }),
  /** Nova's API reaches the database of a cell, or not. What runs in the cell goes on. */
  z.strictObject({ act: z.literal('setCell'), cell: name, reachable: z.boolean() }),
  z.strictObject({ act: z.literal('createGroup'), group: groupSchema }),
  z.strictObject({ act: z.literal('deleteGroup'), group: name }),
  /** `group` null takes the server out of its group. */
  z.strictObject({ act: z.literal('setGroup'), server: name, group: name.nullable() }),
  z.strictObject({ act: z.literal('createAggregate'), aggregate: aggregateSchema }),
  z.strictObject({ act: z.literal('deleteAggregate'), aggregate: name }),
  z.strictObject({
    act: z.literal('setAggregate'),
    aggregate: name,
    name: name.optional(),
    hosts: z.array(name).optional(),
    metadata: z.record(z.string(), z.string()).optional(),
  }),
  // Faults. `fault` null mends it.
  z.strictObject({ act: z.literal('faultServer'), server: name, fault: serverFaultSchema.nullable() }),
  z.strictObject({ act: z.literal('faultHost'), host: name, fault: hostFaultSchema.nullable() }),
  /** Its nova-compute dies in the middle of its work. */
  z.strictObject({ act: z.literal('killHost'), host: name }),
  /** A new nova-compute begins on a host whose own was killed. */
  z.strictObject({ act: z.literal('startHost'), host: name }),
  /** Nova's database forgets the migrations of this server, as after a restore of an older one. */
  z.strictObject({ act: z.literal('loseMigrations'), server: name }),
  z.strictObject({ act: z.literal('faultApi'), fault: apiFaultSchema }),
  /** Without an id: all of them. */
  z.strictObject({ act: z.literal('mendApi'), id: z.number().int().optional() }),
  z.strictObject({ act: z.literal('faultSeries'), fault: seriesFaultSchema }),
  z.strictObject({ act: z.literal('mendSeries'), id: z.number().int().optional() }),
  /** Calls are taken and not answered until the API is resumed. */
  z.strictObject({ act: z.literal('pauseApi'), api }),
  z.strictObject({ act: z.literal('resumeApi'), api }),
  z.strictObject({ act: z.literal('revokeTokens') }),
  z.strictObject({ act: z.literal('setRoles'), user: z.string(), roles: z.array(z.string()) }),
  z.strictObject({ act: z.literal('mendAll') }),
  // The simulation itself.
  z.strictObject({ act: z.literal('setSpeed'), speed: z.number().positive() }),
  z.strictObject({ act: z.literal('setTokenSeconds'), seconds: z.number().positive() }),
]);

export type Act = z.output<typeof actSchema>;
export type ActInput = z.input<typeof actSchema>;
