import { z } from 'zod';
import { isoTimeSchema, reasonSchema } from './envelope.ts';
import { MAX_PROPOSED_STEPS, MAX_VERIFY_SECONDS } from './limits.ts';
import { capacityPlanId } from './names.ts';
import { groupPolicySchema, hostCellSchema } from './snapshot.ts';
import { count, some } from './words.ts';

/** The passes of a cycle, by the names of their moves. */
export const cyclePhases = ['evacuate', 'repair', 'affinity', 'headroom', 'spread', 'pack'] as const;
const phaseSchema = z.enum([...cyclePhases, 'cell', 'capacity']);
export type Phase = z.infer<typeof phaseSchema>;
/** The passes of a plan, by the names of their moves. */
export const phases = phaseSchema.options;

/** How Nova moves a server between cells: a cold migration to a named host, or a resize to another flavor. */
export const cellMethodSchema = z.enum(['migrate', 'resize']);
export type CellMethod = z.infer<typeof cellMethodSchema>;

/** The additional fields of a step of phase `cell`. */
const cellMoveSchema = z.object({
  method: cellMethodSchema,
  /** The aggregate that the server goes to. */
  target: z.string(),
  /** Names of flavors; the same for a cold migration. Null: unknown. */
  oldFlavor: z.string().nullable(),
  newFlavor: z.string().nullable(),
  /** Null: unknown. */
  fromCell: z.string().nullable(),
  toCell: z.string().nullable(),
  /** Expected; 0 for a server that is SHUTOFF. */
  downtimeSeconds: z.number().min(0),
  /** Once verified: the executor confirms it, or waits for a person. */
  confirm: z.enum(['auto', 'manual']),
  /** The checks must pass for this long before the move counts as verified. */
  verifySeconds: z.number().min(0).max(MAX_VERIFY_SECONDS),
});
export type CellMove = z.infer<typeof cellMoveSchema>;

/** One move of a plan: a live migration, or between cells what `cell` says. Released, it becomes a task of the same id. */
export const stepSchema = z.object({
  /** 1, 2, ... in the order in which the plan was made. */
  step: z.int().min(1),
  taskId: z.string(),
  phase: phaseSchema,
  /** True for the first half of a move through a third host. */
  parking: z.boolean(),
  serverId: z.string(),
  serverName: z.string(),
  from: z.string(),
  to: z.string(),
  /** Further legal destinations, best first. */
  alternates: z.array(z.string()),
  /** Tasks that must have completed before this one starts. */
  dependsOn: z.array(z.string()),
  /** Seconds after the release before which it does not start. */
  delaySeconds: z.number().min(0),
  /** It starts before this moment, when its window closes, or never. Absent: no window limits it. */
  startBefore: isoTimeSchema.optional(),
  /** The server's groups, for the cap per group. */
  groups: z.array(z.object({ id: z.string(), policy: groupPolicySchema })),
  resources: z.record(z.string(), z.number()),
  ramMb: z.number(),
  diskGb: z.number(),
  /** The share that the move adds to its destination and takes from its source, by policy name. */
  weights: z.record(z.string(), z.object({ source: z.number(), destination: z.number() })),
  /** The share that the move adds to each alternate, by policy name. Absent: the same as to `to`, because the hosts are alike. */
  alternateWeights: z.array(z.record(z.string(), z.number())).optional(),
  /**
   * The NUMA cells of `to` and the alternates, by name, with Nova's ratios of CPUs and memory: pre-flight compares them with what is there
   * then. Absent: the VM needs no cells, or those of no destination are known.
   */
  hostCells: z
    .record(
      z.string(),
      z.object({ cells: z.array(hostCellSchema), ratios: z.object({ cpu: z.number(), memory: z.number() }) }),
    )
    .optional(),
  /** Why this VM and this destination; absent when kept in the plan's details. */
  why: reasonSchema.optional(),
  /** Exactly in phase `cell`. */
  cell: cellMoveSchema.optional(),
});
export type Step = z.infer<typeof stepSchema>;

/** The load of a host, by policy name; only policies with a whole answer. */
export const hostLoadSchema = z.object({
  host: z.string(),
  values: z.record(z.string(), z.number()),
  /** The sum of the values of its VMs: what of the host changes by itself. */
  vms: z.record(z.string(), z.number()),
  /** Of it, those that moves brought which are compared. */
  arrived: z.record(z.string(), z.number()),
});
export type HostLoad = z.infer<typeof hostLoadSchema>;

/** The state of one policy before or after a plan. */
const policyImbalanceSchema = z.object({
  policy: z.string(),
  imbalance: z.number().nullable(),
  threshold: z.number(),
  participates: z.boolean(),
  detected: z.boolean(),
  /** Whether a host is above the policy's `act_above`. Below it the policy detects nothing. Absent: it has none. */
  acts: z.boolean().optional(),
  /** Number of evaluations in a row that detected it, this one included. */
  sustainedCycles: z.int().min(0),
});
export type PolicyImbalance = z.infer<typeof policyImbalanceSchema>;

/** The loads of the hosts when a plan was made. An executor judges by them whether a move to an alternate still helps. */
const planLoadsSchema = z.object({
  policies: z.array(z.object({ policy: z.string(), weight: z.number(), threshold: z.number() })),
  /** Values of the hosts that take part in the imbalance, in the order of the policies, to 6 digits. */
  hosts: z.array(z.object({ host: z.string(), values: z.array(z.number()) })),
});
export type PlanLoads = z.infer<typeof planLoadsSchema>;

const planSchema = z.object({
  /** The id of the snapshot it was decided on. */
  id: z.string(),
  planner: z.enum(['search', 'greedy']),
  budget: z.int().min(0),
  steps: z.array(stepSchema).min(1),
  after: z.object({ combined: z.number().nullable(), policies: z.array(policyImbalanceSchema) }),
  /** No plan with this budget can bring the combined imbalance below this; null where none is known. */
  lowerBound: z.number().nullable(),
  /** Reduction reached / reduction that the bound leaves possible, 0..1; null where there is nothing to reduce. */
  shareOfPossible: z.number().nullable(),
  candidatesEvaluated: z.int().min(0),
  /** Absent: no step that balances has an alternate. */
  loads: planLoadsSchema.optional(),
  /** The end of the search: nothing more was found, or more moves (more work) might have found more. */
  endedBy: z.enum(['done', 'budget', 'work']).optional(),
  /**
   * The window at the snapshot's time. Not open: the plan is recorded and not released. `until`: when that changes; null:
   * never. Absent: no window limits the plan.
   */
  window: z.object({ open: z.boolean(), until: isoTimeSchema.nullable() }).optional(),
});

/** A VM that had to leave its host or its group's state and could not. */
const stuckSchema = z.object({
  serverId: z.string(),
  serverName: z.string(),
  host: z.string(),
  phase: phaseSchema,
  reason: reasonSchema,
});
export type Stuck = z.infer<typeof stuckSchema>;

/**
 * The course of a decision: the cheapest moves that were found, of any number, after which every policy is at its target. If none were
 * found, the moves to the lowest combined imbalance. The plan of the cycle is its first part. It is computed again in each cycle.
 */
const courseSchema = z.object({
  /** Every policy ends at or below its target. */
  reaches: z.boolean(),
  /** The moves that are left, the steps of this plan included, and their cost in GiB. */
  moves: z.int().min(1),
  costGib: z.number().min(0),
  /** Cycles with the present budget, this one included. */
  cycles: z.int().min(1),
  /** About the time until the last of them has ended, by the aggregate cooldown and the measured pace of moves. */
  seconds: z.number().min(0),
  /** The state at its end. */
  after: z.object({
    combined: z.number(),
    policies: z.array(z.object({ policy: z.string(), imbalance: z.number(), target: z.number() })),
  }),
  /** No part of the course fits the budget: moves of the smallest part that may be made at once. Absent: a part fits. */
  neededBudget: z.int().min(1).optional(),
});
export type Course = z.infer<typeof courseSchema>;

/** VMs of a disabled host that wait for something that ends by itself: how many, and the name of one of them. */
const evacuationWaitSchema = z.object({
  code: z.string(),
  text: z.string(),
  count: z.int().min(1),
  serverName: z.string(),
});

/** Whether the other hosts have room for the servers of hosts that fail now, in the state before the plan. */
const failoverSchema = z.object({
  /** `failover_hosts`. */
  hosts: z.int().min(1),
  /** Failures that were tested: of each host by itself, or together with the `hosts - 1` others whose servers have the most RAM. */
  tested: z.int().min(0),
  /** Those of them that leave servers without a host, or for which the search did not find one in its limit. */
  lacking: z.int().min(0),
  /** The first of these. */
  failures: z.array(
    z.object({
      hosts: z.array(z.string()),
      /** The servers on the hosts, and those of them without a host: the fewest that the search found. */
      servers: z.int().min(1),
      stranded: z.int().min(1),
      /** Names of the first of these. */
      names: z.array(z.string()),
      /** No placement leaves fewer without a host. */
      proven: z.boolean(),
    }),
  ),
});
export type Failover = z.infer<typeof failoverSchema>;

/** Whether hosts may fail, as a sentence without its stop. */
export function failoverText({ hosts, tested, lacking, failures }: Failover): string {
  const what = hosts === 1 ? 'one host' : `${hosts} hosts`;
  const [first] = failures;
  if (first === undefined)
    return `room for the failure of ${what}: the other hosts take all VMs (tested: ${count(tested, 'failure')})`;
  const { hosts: lost, stranded, servers, names, proven } = first;
  const without = `${proven ? '' : 'up to '}${stranded} of ${count(servers, 'VM')} would have no host`;
  const named = `${some(names)}${names.length < stranded ? ' and others' : ''}`;
  return `no room for ${lacking} of ${count(tested, 'failure')} of ${what}: without ${lost.join(', ')}, ${without} (${named})`;
}

/** Moves of others that undo or repeat moves of Kronos: a second balancer, a person, a script. */
const foreignSchema = z.object({
  /** How many ended within `foreign_wait`. */
  count: z.int().min(1),
  /** Those of them that took a server off the host that Kronos chose. */
  undone: z.int().min(0),
  /** The newest of them. */
  moves: z.array(
    z.object({
      serverId: z.string(),
      serverName: z.string(),
      from: z.string(),
      to: z.string(),
      at: isoTimeSchema,
      /** It took the server off the host to which Kronos had moved it; else it moved the server to that host. */
      undoes: z.boolean(),
    }),
  ),
  /** Several servers: nothing is balanced before this. Absent: one server, or `foreign_moves` is ignore. */
  waitUntil: isoTimeSchema.optional(),
  /** One server: only an evacuation moves it before this. Absent: several, or `foreign_moves` is ignore. */
  stayUntil: isoTimeSchema.optional(),
});
export type Foreign = z.infer<typeof foreignSchema>;

/** The moves of others, as a sentence without its stop. */
export function foreignText({ count: all, undone, moves: [newest], waitUntil, stayUntil }: Foreign): string {
  const verb = undone === 0 ? 'repeat' : undone === all ? 'undo' : 'undo or repeat';
  const what =
    all === 1
      ? `a migration that Kronos did not start ${undone === 0 ? 'repeats' : 'undoes'} one of its moves`
      : `${all} migrations that Kronos did not start ${verb} its moves`;
  const last =
    newest === undefined
      ? ''
      : `: ${all === 1 ? 'it' : 'the last one'} moved ${newest.serverName} from ${newest.from} to ${newest.to} at ${newest.at}`;
  const wait = waitUntil === undefined ? '' : `; nothing is balanced until ${waitUntil}`;
  return `${what}${last}${wait}${stayUntil === undefined ? '' : `; the VM stays there until ${stayUntil}`}`;
}

/** The outcome of a decision, before it is written: what the pure core returns. */
export const decisionSchema = z.object({
  /** Planned: there is a plan. Quiet: nothing needs doing, or nothing helps. Gated: a gate ended the cycle before planning. */
  outcome: z.enum(['planned', 'quiet', 'gated']),
  reason: reasonSchema,
  before: z.object({ combined: z.number().nullable(), policies: z.array(policyImbalanceSchema) }),
  plan: planSchema.nullable(),
  /** Refused candidates by reason code. */
  refusals: z.record(z.string(), z.int()),
  warnings: z.array(reasonSchema),
  /** Evacuations and repairs that cannot be done, and why. */
  stuck: z.array(stuckSchema),
  /** The end of evacuation per disabled host: `done` (no VM left), `stuck` or `running`. */
  evacuations: z.array(
    z.object({
      host: z.string(),
      state: z.enum(['done', 'stuck', 'running']),
      left: z.int(),
      /** The reasons for which VMs wait before a plan can move them, by code. Absent: none waits. */
      waits: z.array(evacuationWaitSchema).optional(),
    }),
  ),
  /** Absent: the budget reaches the targets in this cycle, there is nothing to balance, or no course was found. */
  course: courseSchema.optional(),
  /** Absent: `failover_hosts` is 0. */
  failover: failoverSchema.optional(),
  /** Absent: Nova shows none. */
  foreign: foreignSchema.optional(),
});
export type Decision = z.infer<typeof decisionSchema>;

/** A server that was asked for and cannot move. */
const refusedSchema = stuckSchema.omit({ phase: true });

/** The outcome of a request for a plan, before it is written: what the pure core returns. */
export const proposalDecisionSchema = z.object({
  /** Planned: there are steps. Quiet: nothing can or need be moved. Gated: a gate ended it before planning. */
  outcome: z.enum(['planned', 'quiet', 'gated']),
  reason: reasonSchema,
  /**
   * In the order in which they are to be made; no server is in two. Between cells: of phase `cell`, and each depends on none. Of a plan that makes
   * room: of phase `capacity`.
   */
  steps: z.array(stepSchema).max(MAX_PROPOSED_STEPS),
  /** Servers that cannot move, and why. */
  refused: z.array(refusedSchema),
  /** The number of refused servers by reason code. */
  refusals: z.record(z.string(), z.int()),
  /** Servers that could move and are beyond the limit. */
  left: z.int().min(0),
  /** Facts that could not be read, and facts that a person must know before the approval. */
  warnings: z.array(reasonSchema),
  /** Of a plan that makes room, unless it is gated. */
  capacity: z
    .object({
      /** New VMs that were asked for, that fit without moves, and that fit after the moves. */
      wanted: z.int().min(1),
      now: z.int().min(0),
      after: z.int().min(0),
      /** True when no plan has fewer moves, or when none makes room for all. */
      proven: z.boolean(),
    })
    .optional(),
});
export type ProposalDecision = z.infer<typeof proposalDecisionSchema>;

/** Why a request for a plan is answered without one, as its snapshot can no longer be decided, by code: what the person does then. */
export const requestRemedies = {
  'clock-skew': 'correct the clock of the scorer, then run the command again',
  'stored-late': 'run the command again',
  'too-old': 'run the command again',
} as const;

/** Whether it is the code of such an answer. */
export const isRequestRefusal = (code: string): code is keyof typeof requestRemedies =>
  Object.hasOwn(requestRemedies, code);

type Proposal = {
  readonly aggregate: string;
  readonly data: { readonly planId: string; readonly commandId: string } & Pick<ProposalDecision, 'capacity'>;
};

/** Whether the plan, or the answer that there is none, makes room for new VMs in its aggregate. Else it moves VMs between cells. */
export const makesRoom = ({ aggregate, data: { planId, commandId, capacity } }: Proposal): boolean =>
  capacity !== undefined || planId === capacityPlanId(aggregate, commandId);
