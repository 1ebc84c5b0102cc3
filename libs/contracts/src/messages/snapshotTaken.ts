import { z } from 'zod';
import { isoTimeSchema, logMarkSchema, objectRefSchema, reasonSchema } from '../envelope.ts';
import {
  answerCauseSchema,
  policyScoresSchema,
  profileSumSchema,
  snapshotSchema,
  unusedVmsSchema,
} from '../snapshot.ts';
import { count } from '../words.ts';
import { defineMessage } from './define.ts';

/** The message on `kronos.snapshots.<agg>`: a readable summary and where the snapshot is. */
export const snapshotTaken = defineMessage({
  type: 'snapshot.taken',
  writers: ['scorer'],
  data: z.object({
    snapshotId: z.string(),
    purpose: snapshotSchema.shape.purpose,
    cycle: z.int(),
    intervalSeconds: z.number(),
    observedFrom: isoTimeSchema,
    hosts: z.int(),
    servers: z.int(),
    combined: z.number().nullable(),
    policies: z.array(
      policyScoresSchema
        .pick({ policy: true, participates: true, imbalance: true, threshold: true, detected: true })
        .extend({
          /** Why the policy is not used; null when it is. */
          reason: reasonSchema.nullable().optional(),
          /** Hosts and VMs of the aggregate for which its queries gave a value. Absent: not known. */
          matchedHosts: z.int().min(0).optional(),
          matchedServers: z.int().min(0).optional(),
          /** Why the answer about hosts is not used as it is. Absent: it is, or not known. */
          hostCause: answerCauseSchema.optional(),
          sizes: policyScoresSchema.shape.sizes,
          profileSum: profileSumSchema.optional(),
          /** The answer about VMs, where some have no value for a known reason. Absent: none, or not known. */
          vms: z
            .object({ cause: answerCauseSchema.optional(), text: z.string(), unused: unusedVmsSchema.optional() })
            .optional(),
        }),
    ),
    /** Hosts that can be no destination, by the state of their nova-compute service. Absent: not known. */
    outOfService: z
      .array(
        z.object({
          state: z.enum(['down', 'forcedDown', 'disabled', 'unknown']),
          count: z.int().min(1),
          /** The first of them, at most {@link NAMED_HOSTS}. */
          hosts: z.array(z.string()),
        }),
      )
      .optional(),
    problems: z.array(reasonSchema),
    /** Rows of Nova's migrations that nobody works on any more, in a sentence. Absent: there are none. */
    abandoned: reasonSchema.optional(),
    /** Hard server groups whose members are placed against their rule, in a sentence. Absent: there are none, or not known. */
    brokenGroups: reasonSchema.optional(),
    /** VMs that stay where they are because their ports are not known. */
    unreadPorts: reasonSchema.optional(),
    body: objectRefSchema,
    /** The log when it was taken. Absent: written by Kronos 0.1. */
    log: logMarkSchema.optional(),
  }),
  sentence: (event) => {
    const { hosts, servers, policies, combined, purpose, problems } = event.data;
    const above = policies.filter((p) => p.detected).map((p) => p.policy);
    const state =
      problems[0]?.text ?? (above.length === 0 ? 'within thresholds' : `above threshold: ${above.join(', ')}`);
    const kept = purpose === 'record' ? ', recorded' : purpose === 'command' ? ', requested' : '';
    return `saw ${count(hosts, 'host')} and ${count(servers, 'VM')}${kept}: ${state}${combined === null ? '' : `, combined imbalance ${combined.toFixed(3)}`}`;
  },
});
export type SnapshotTaken = z.infer<typeof snapshotTaken.schema>;
