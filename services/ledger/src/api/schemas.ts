import {
  actorSchema,
  cellMethodSchema,
  cycleDecided,
  engineOptionsSchema,
  isoTimeSchema,
  reasonSchema,
  snapshotSchema,
} from '@kronos/contracts';
import { cellStoryStates } from '@kronos/replay';
import { z } from 'zod';

/** The answers of the JSON interface. The OpenAPI document is made from these schemas, and the handlers are typed by them. */

const time = isoTimeSchema;
const sequence = z.int().min(0).describe('Sequence on KRONOS_LOG');
const byPolicy = z.array(z.number().nullable()).describe('In the order of `policies`; null: no value');

const standing = z
  .enum([
    'unplannable',
    'paused',
    'waitingForApproval',
    'moving',
    'dryRun',
    'coolingDown',
    'outOfBalance',
    'unmeasured',
    'idle',
    'unknown',
  ])
  .describe('What the aggregate does: the first of these that holds');

const asked = z
  .strictObject({ at: time, by: z.string(), comment: z.string().nullable(), commandId: z.string(), sequence })
  .nullable();

const duration = {
  expectedMs: z.number(),
  interval: z
    .strictObject({ lowMs: z.number(), highMs: z.number() })
    .nullable()
    .describe('Covers 90 % of such moves; null: too few former moves are known for an interval'),
  measured: z
    .boolean()
    .describe('By the pace of former moves; false: fewer than 3 are known, and 100 MiB/s are assumed'),
};
const drainStates = ['disabling', 'leaving', 'stuck', 'drained', 'ending'] as const;
const drain = z.strictObject({
  host: z.string(),
  state: z.enum(drainStates),
  text: z.string(),
  by: z.string(),
  since: time,
  comment: z.string().nullable(),
});

const policyImbalance = cycleDecided.data.shape.before.shape.policies.element.strict();
const outcome = cycleDecided.data.shape.outcome;
const release = cycleDecided.data.shape.release;

const course = cycleDecided.data.shape.course
  .unwrap()
  .pick({ reaches: true, moves: true, cycles: true, seconds: true, neededBudget: true })
  .strict()
  .nullable()
  .describe(
    'What is left until the targets are reached, by the last decision that looked for it; null: nothing, or no course is known',
  );

const aggregateLine = z.strictObject({
  name: z.string(),
  standing,
  ratio: z.number().nullable().describe("The worst policy's imbalance as a multiple of its threshold; 1 is the line"),
  course,
  paused: z.strictObject({ here: asked, everywhere: asked }),
  unreadable: z.looseObject({ sequence, claimedType: z.string(), problem: z.string() }).nullable(),
  waitingPlan: z.strictObject({ planId: z.string(), expiresAt: time, steps: z.int() }).nullable(),
  cooldown: z
    .strictObject({
      cause: z.enum(['released', 'rejected', 'expired']),
      planId: z.string().nullable(),
      since: time,
      until: time,
    })
    .nullable(),
  movesInFlight: z.int(),
  slots: z.int(),
  quarantined: z.int(),
  brokenHosts: z.array(z.strictObject({ host: z.string(), until: time })),
  drains: z.array(drain),
  lastDecision: z
    .strictObject({
      snapshotId: z.string(),
      time,
      cycle: z.int(),
      outcome,
      release,
      reason: reasonSchema,
      combined: z.number().nullable(),
      policies: z.array(policyImbalance),
      sequence,
    })
    .nullable(),
  lastRelease: z.strictObject({ planId: z.string(), at: time }).nullable(),
  lastMoveEnd: z.strictObject({ taskId: z.string(), at: time }).nullable(),
  planner: z
    .strictObject({
      version: z.string(),
      optionsDigest: z.string(),
      since: time,
      dryRun: z.boolean(),
      approval: engineOptionsSchema.shape.approval,
    })
    .nullable(),
});

const task = z.strictObject({
  id: z.string(),
  planId: z.string(),
  status: z.enum(['waiting', 'started', 'retryPending', 'completed', 'failed', 'skipped']),
  phase: z.string(),
  serverId: z.string(),
  serverName: z.string(),
  from: z.string(),
  destination: z.string(),
  planned: z.string(),
  alternates: z.array(z.string()),
  dependsOn: z.array(z.string()),
  ramMb: z.number(),
  attempt: z.int(),
  notBefore: time,
  started: z
    .strictObject({
      at: time,
      by: z.string(),
      migrationId: z.int().nullable(),
      requestId: z.string().nullable(),
      forced: z.boolean(),
      verifying: z
        .strictObject({ at: time, host: z.string() })
        .nullable()
        .describe('Where a server that was moved between cells waits to be confirmed (VERIFY_RESIZE)'),
      abortRefused: z.strictObject({ at: time, status: z.int(), text: z.string() }).nullable(),
    })
    .nullable(),
  ended: z.strictObject({ at: time, host: z.string().nullable(), warnings: z.array(reasonSchema) }).nullable(),
  lastFailure: z
    .strictObject({
      at: time,
      attempt: z.int(),
      destination: z.string(),
      errorType: z.string(),
      reason: reasonSchema,
      final: z.boolean(),
    })
    .nullable(),
  cancelAsked: asked,
  abortAsked: asked,
  closeAsked: asked,
});

const plan = z.strictObject({
  id: z.string(),
  aggregate: z.string(),
  state: z.string(),
  sequence,
  decidedAt: time,
  expiresAt: time.nullable(),
  releasedAt: time.nullable(),
  approvedBy: z.string().nullable(),
  startBefore: time.nullable(),
  dispatchedAt: time.nullable(),
  endedAt: time.nullable(),
  rejectedSteps: z.array(z.int()),
  steps: z.int(),
  completed: z.int(),
  warned: z.int(),
  failed: z.int(),
  skipped: z.int(),
});

const serverName = z.string().nullable().describe('null: no recent event names it');

const quarantine = z.strictObject({
  aggregate: z.string(),
  serverId: z.string(),
  serverName,
  cause: z.enum(['failure', 'operator']),
  since: time,
  until: time.nullable().describe('null: until it is released'),
  by: z.string(),
  text: z.string(),
});

const event = z.strictObject({
  sequence,
  time: time.nullable(),
  aggregate: z.string(),
  type: z.string(),
  by: z.string().nullable(),
  text: z.string(),
  planId: z.string().nullable(),
  taskId: z.string().nullable(),
  serverId: z.string().nullable(),
});

const decisionPoint = z.strictObject({
  sequence,
  time,
  snapshotId: z.string(),
  outcome,
  release,
  reason: reasonSchema,
  steps: z.int(),
  combined: z.number().nullable(),
  combinedAfter: z.number().nullable(),
  ratio: z.number().nullable().describe("The worst policy's imbalance as a multiple of its threshold"),
  ratioAfter: z.number().nullable().describe('The same after the plan; null: no plan'),
  policies: z.array(policyImbalance.omit({ participates: true })),
});

/** The snapshot that an answer is made from. */
const observed = z.strictObject({
  id: z.string(),
  time,
  cycle: z.int(),
  purpose: snapshotSchema.shape.purpose,
});

const resources = z.strictObject({
  vcpus: z.number().nullable(),
  ramMb: z.number().nullable(),
  diskGb: z.number().nullable(),
});

const host = z.strictObject({
  name: z.string(),
  zone: z.string().nullable(),
  service: snapshotSchema.shape.hosts.element.shape.service,
  vms: z.int(),
  values: byPolicy,
  free: resources.describe('Capacity less used, as Placement counts; null: unknown'),
  capacity: resources.describe('Total less reserved, times the allocation ratio; null: unknown'),
});

const hostPolicy = snapshotSchema.shape.scores.shape.policies.element
  .pick({
    policy: true,
    participates: true,
    reason: true,
    threshold: true,
    weight: true,
    imbalance: true,
    detected: true,
  })
  .extend({
    lowest: z.number().nullable().describe('The smallest value of a host; null: no host has a value'),
    highest: z.number().nullable(),
    allocation: z
      .string()
      .nullable()
      .describe(
        'The resource class of Placement of which the values are the allocated share; `instances`: numbers of VMs; null: metrics',
      ),
  })
  .strict();

const vm = z.strictObject({
  id: z.string(),
  name: z.string(),
  host: z.string(),
  status: z.string(),
  taskState: z.string().nullable(),
  locked: z.boolean(),
  optedOutBy: z.string().nullable(),
  flavor: z.string().nullable(),
  vcpus: z.number(),
  ramMb: z.number(),
  diskGb: z.number(),
  values: byPolicy,
});

const move = z.strictObject({
  aggregate: z.string(),
  taskId: z.string(),
  planId: z.string(),
  serverId: z.string(),
  serverName,
  attempt: z.int(),
  from: z.string(),
  to: z.string(),
  startedAt: time.nullable().describe('null: it ended before it was started'),
  endedAt: time.nullable().describe('null: it is under way'),
  durationMs: z.number().nullable(),
  outcome: z
    .enum(['underWay', 'completed', 'warned', 'damaged', 'retried', 'failed', 'skipped'])
    .describe('`retried`: failed, and another attempt follows. `damaged`: its server was in ERROR after it'),
  text: z.string().nullable(),
});

const destination = z.strictObject({
  host: z.string(),
  refusal: z.strictObject({ code: z.string(), text: z.string() }).nullable(),
  combined: z.number().nullable().describe('Combined imbalance if the VM went there'),
  gain: z.number().nullable(),
  worsens: z.array(z.string()).describe('Policies that would get worse and end above their thresholds'),
});

const server = { serverId: z.string(), serverName: z.string() };

const world = z.strictObject({
  combined: z.array(z.number().nullable()),
  moves: z.array(z.int()),
  totals: z.strictObject({
    moves: z.int(),
    meanImbalance: z.number().nullable(),
    maxImbalance: z.number().nullable(),
    lastImbalance: z.number().nullable(),
    ruleBreaks: z.int().describe('Of server groups, at the end'),
  }),
});

/** One answer per operation. */
export const answers = {
  about: z.strictObject({
    service: z.literal('kronos-ledger'),
    version: z.string(),
    sequence,
    time,
    routes: z.array(z.string()),
  }),
  alarms: z.strictObject({
    sequence,
    time,
    well: z.boolean(),
    alarms: z.array(
      z.looseObject({
        code: z.string(),
        severity: z.enum(['alarm', 'info']),
        about: z.string(),
        text: z.string(),
        remedy: z.string(),
        runbook: z.string(),
        since: time.describe('When this ledger saw it first'),
      }),
    ),
    services: z
      .array(z.looseObject({ service: actorSchema.shape.service, instance: z.string(), reportedAt: time }))
      .nullable(),
  }),
  regions: z.strictObject({
    time,
    regions: z.array(
      z.strictObject({
        name: z.string(),
        url: z.string().describe('Of its console'),
        seen: z
          .strictObject({
            aggregates: z.int(),
            hosts: z.int(),
            vms: z.int(),
            moves: z.int().describe('In flight'),
            alarms: z.int(),
            ratio: z.number().nullable().describe('The worst of its aggregates; null: none is known'),
            standings: z.record(z.string(), z.int()).describe('What an aggregate does, and how many do'),
          })
          .nullable(),
        problem: z.string().nullable().describe('Why nothing is seen'),
      }),
    ),
  }),
  aggregates: z.strictObject({
    sequence,
    time,
    aggregates: z.array(aggregateLine.extend({ inScope: z.boolean() })),
  }),
  fleet: z.strictObject({
    sequence,
    time,
    aggregates: z.array(
      aggregateLine.extend({
        inScope: z.boolean(),
        hosts: z.int().nullable().describe('Of the newest snapshot; null: none is known'),
        vms: z.int().nullable(),
        skylines: z
          .array(
            z.strictObject({
              policy: z.string(),
              threshold: z.number(),
              values: z
                .array(z.number())
                .describe('One per host with a value, the highest first; of many hosts, 60 quantiles'),
              highest: z.string().nullable().describe('The host with the highest value; null: no host has one'),
            }),
          )
          .describe('The hosts by policy, at most a minute older than the newest snapshot'),
        trend: z
          .array(z.number().nullable())
          .describe('The ratio over the last 6 hours, at most 60 points, oldest first'),
        promised: z.int().describe('How many of the last points count moves under way as done'),
        plan: z
          .strictObject({
            planId: z.string(),
            sequence,
            moves: z.int(),
            ratioAfter: z.number().nullable(),
            ramMb: z.number().nullable().describe('Memory of its VMs; null: not known any more'),
            time: z
              .strictObject(duration)
              .nullable()
              .describe('How long its moves take; null: its steps are not known any more'),
          })
          .nullable()
          .describe('The plan that waits for approval, or that a dry run did not release'),
        movesTime: z
          .strictObject(duration)
          .nullable()
          .describe(
            'How long the moves in flight take, as if all of them began now; null: there are none, or they wait for a person',
          ),
      }),
    ),
  }),
  picture: z.strictObject({
    aggregate: z.string(),
    snapshot: observed,
    combined: z.number().nullable(),
    policies: z.array(hostPolicy),
    hosts: z.array(
      z.strictObject({
        name: z.string(),
        service: snapshotSchema.shape.hosts.element.shape.service,
        vms: z.int(),
        values: byPolicy,
      }),
    ),
    vms: z
      .strictObject({
        ids: z.array(z.string()),
        names: z.array(z.string()),
        hosts: z.array(z.int()).describe('Index of the host'),
        weights: z
          .array(z.array(z.number().nullable()))
          .describe('One array per policy, as its profile measures; null: no value'),
      })
      .nullable()
      .describe('Columns of one table: entry i of each belongs to one VM; null: they are too many to be told apart'),
  }),
  aggregate: aggregateLine.extend({
    inScope: z.boolean(),
    sequence,
    time,
    options: z.looseObject({}).nullable().describe("The planner's options in force"),
    next: z
      .array(
        z.strictObject({
          at: time.nullable().describe('null: unknown, or due'),
          what: z.enum(['blocked', 'approval', 'move', 'drain', 'cycle', 'cooldown', 'host', 'quarantine']),
          text: z.string(),
        }),
      )
      .describe('What happens next and when'),
    sustained: z.record(z.string(), z.int()),
    slotsBy: z.strictObject({
      source: z.record(z.string(), z.int()),
      destination: z.record(z.string(), z.int()),
      group: z.record(z.string(), z.int()),
    }),
    moves: z.array(task),
    plans: z.array(plan),
    quarantine: z.array(quarantine),
  }),
  imbalance: z.strictObject({
    points: z.int().describe('Decisions in the range, before they were thinned out'),
    times: z.array(time),
    snapshotIds: z.array(z.string()),
    sequences: z.array(sequence),
    combined: z.array(z.number().nullable()),
    steps: z.array(z.int()).describe("Steps of the decision's plan; 0 without one"),
    release: z.array(release),
    reasons: z.array(z.string()).describe('The texts that `reason` names by their index'),
    reason: z.array(z.int()).describe("Index of the decision's reason in `reasons`"),
    policies: z.array(
      z.strictObject({
        policy: z.string(),
        imbalance: z.array(z.number().nullable()),
        threshold: z.array(z.number().nullable()),
      }),
    ),
    runs: z
      .array(
        z.strictObject({
          planId: z.string(),
          sequence: sequence.nullable(),
          release,
          decidedAt: time.nullable(),
          releasedAt: time.nullable().describe('When its moves were free to start; null: they were not'),
          steps: z.int().nullable().describe('Moves that were released, or planned where none was'),
          started: z.array(time).describe('First attempts'),
          completed: z.array(time),
          failed: z.array(time).describe('Final failures of started moves'),
          skipped: z.array(time).describe('Ends of moves that were never started'),
        }),
      )
      .describe('The latest plans with a move or a release, oldest first: when their moves started and ended'),
  }),
  hosts: z.strictObject({
    aggregate: z.string(),
    snapshot: observed,
    combined: z.number().nullable(),
    policies: z.array(hostPolicy),
    problems: z.array(reasonSchema),
    hosts: z.array(host),
  }),
  vms: z.strictObject({
    aggregate: z.string(),
    snapshot: observed,
    policies: z.array(z.string()),
    total: z.int().describe('VMs that the filter leaves'),
    vms: z.array(vm),
    next: z.string().nullable().describe('Pass it as `after` for the next page; null: this is the last one'),
  }),
  planHosts: z.strictObject({
    aggregate: z.string(),
    planId: z.string(),
    snapshot: observed,
    policies: z.array(z.strictObject({ policy: z.string(), threshold: z.number() })),
    hosts: z.array(
      z.strictObject({
        name: z.string(),
        before: byPolicy,
        after: byPolicy,
        vmsBefore: z.int(),
        vmsAfter: z.int(),
        leaving: z.array(z.int()).describe('Numbers of the steps'),
        arriving: z.array(z.int()),
      }),
    ),
  }),
  plans: z.strictObject({ plans: z.array(plan) }),
  plan: z.strictObject({
    time: z.strictObject(duration).nullable().describe('How long its moves take; null: its steps are not known'),
    stepTimes: z.array(z.strictObject(duration)).describe('How long each step takes, in their order'),
    plan: plan.nullable(),
    tasks: z.array(task),
    decision: cycleDecided.schema.nullable(),
    refused: z
      .array(z.strictObject({ code: z.string(), text: z.string(), candidates: z.int() }))
      .describe('Why moves were refused, and how many candidates of each; the most frequent first'),
    events: z.array(event),
  }),
  tasks: z.strictObject({
    sequence,
    total: z.int(),
    tasks: z.array(task.extend({ aggregate: z.string() })),
  }),
  task: z.strictObject({ task: task.extend({ aggregate: z.string() }).nullable(), events: z.array(event) }),
  decisions: z.strictObject({ decisions: z.array(decisionPoint) }),
  history: z.strictObject({ from: z.enum(['memory', 'log']), events: z.array(event), next: sequence.nullable() }),
  vm: z.strictObject({
    serverId: z.string(),
    aggregates: z.array(
      z.strictObject({
        aggregate: z.string(),
        coolingDownUntil: time.nullable(),
        quarantine: quarantine.omit({ aggregate: true, serverId: true, serverName: true }).nullable(),
        releases: z.array(time),
        lastFailure: z
          .strictObject({ at: time, errorType: z.string(), text: z.string(), taskId: z.string() })
          .nullable(),
        moves: z.array(task),
      }),
    ),
    ran: z
      .array(z.strictObject({ host: z.string(), since: time.nullable(), until: time.nullable() }))
      .describe('Hosts where it ran, by the recent moves of Kronos; oldest first. null: unknown, or still'),
    cells: z
      .array(
        z.strictObject({
          aggregate: z.string(),
          planId: z.string(),
          to: z.string().describe('The aggregate that the VMs of the plan go to'),
          sequence,
          proposedAt: time,
          approvalUntil: time.describe('The last moment at which the plan can be approved'),
          state: z.enum(cellStoryStates),
          step: z
            .strictObject({
              taskId: z.string(),
              from: z.string(),
              to: z.string(),
              method: cellMethodSchema,
              oldFlavor: z.string().nullable(),
              newFlavor: z.string().nullable(),
            })
            .nullable()
            .describe('null: it stays'),
          reason: reasonSchema.nullable().describe('Why it moves or stays; null: not kept any more'),
          events: z.array(event),
        }),
      )
      .describe('Recent plans between cells that name it, the newest first, as `kronos explain vm` tells them'),
    events: z.array(event),
  }),
  host: z.strictObject({
    host: z.string(),
    aggregates: z.array(
      z.strictObject({
        aggregate: z.string(),
        drain: drain.nullable(),
        brokenUntil: time.nullable(),
        failures: z.array(time),
        slots: z.strictObject({ leaving: z.int(), arriving: z.int() }),
        moves: z.array(task),
      }),
    ),
    events: z.array(event),
  }),
  quarantine: z.strictObject({ quarantine: z.array(quarantine) }),
  moves: z.strictObject({
    aggregate: z.string(),
    since: time.nullable().describe('Time of the oldest event that was looked at'),
    moves: z.array(move),
  }),
  vmWhy: z.strictObject({
    aggregate: z.string(),
    serverId: z.string(),
    decision: z.strictObject({ sequence, time, snapshotId: z.string(), outcome, reason: reasonSchema }),
    waits: z
      .strictObject({
        planId: z.string(),
        sequence,
        decidedAt: time,
        step: z.int(),
        of: z.int(),
        from: z.string(),
        to: z.string(),
      })
      .nullable()
      .describe('The step of the plan that waits for approval and would move it; null: none does'),
    missing: z.string().nullable().describe('Why the decision cannot be made again'),
    same: z.boolean().nullable().describe('Whether making it again gave the recorded decision'),
    vm: z
      .strictObject({
        serverName: z.string(),
        host: z.string(),
        assumed: z
          .string()
          .nullable()
          .describe('Where a released move takes it, which the decision assumes to be done'),
        weights: z.record(z.string(), z.number()),
        groups: z.array(z.string()),
        steps: z.array(z.int()).describe('Steps of the plan that move it'),
        verdict: z.strictObject({
          code: z.string(),
          text: z.string(),
          detail: z.record(z.string(), z.union([z.string(), z.number()])),
        }),
        destinations: z.strictObject({ all: z.int(), legal: z.int(), best: z.array(destination) }),
      })
      .nullable()
      .describe('null: the decision does not know the VM'),
  }),
  decision: z.strictObject({
    aggregate: z.string(),
    decision: z.strictObject({
      sequence,
      time,
      snapshotId: z.string(),
      outcome,
      reason: reasonSchema,
      plannerVersion: z.string(),
      digest: z.string().describe('Of the recorded decision: `sha256:` and the hash of its canonical JSON'),
    }),
    steps: z.array(z.looseObject({})).describe('The steps of its plan, without their reasons; none without a plan'),
    input: z
      .strictObject({ snapshot: z.looseObject({}), memory: z.looseObject({}), options: engineOptionsSchema })
      .nullable()
      .describe('Snapshot, facts of the log and options; null: `missing` says why'),
    missing: z.string().nullable(),
  }),
  hostDrain: z.strictObject({
    aggregate: z.string(),
    snapshotTime: time,
    host: z.string(),
    disabled: z.strictObject({ reason: z.string().nullable() }).nullable().describe('Somebody disabled it already'),
    moves: z.array(
      z.strictObject({
        ...server,
        to: z.string(),
        ramMb: z.number(),
        diskGb: z.number(),
        duration: z.strictObject(duration).describe('How long it takes'),
      }),
    ),
    time: z
      .strictObject({ ...duration, plans: z.int().describe('How many plans it takes') })
      .nullable()
      .describe('How long these moves take; null: no plan may have a move'),
    waiting: z.array(z.strictObject({ ...server, reason: reasonSchema })),
    stuck: z.array(z.strictObject({ ...server, reason: reasonSchema })),
    blockedBy: z.string().nullable().describe('Why nothing would be done if a drain was asked for'),
    holds: z.array(z.string()).describe('What the moves wait for: a window, an approval'),
  }),
  drainRun: z.strictObject({
    aggregate: z.string(),
    sequence,
    hosts: z.array(
      z.strictObject({
        host: z.string(),
        state: z.enum(['todo', ...drainStates, 'over']).describe('todo: not asked for yet; over: its drain has ended'),
        text: z.string(),
      }),
    ),
    next: z
      .strictObject({
        act: z.enum(['drain', 'maintain', 'wait', 'end']),
        host: z.string().nullable().describe('Which host is to be drained, or is empty for its maintenance'),
        problem: z.string().nullable().describe('Why the run ended early'),
      })
      .describe('What is next. A person does it: Kronos drains nothing by itself'),
  }),
  hostValues: z.strictObject({
    aggregate: z.string(),
    host: z.string(),
    times: z.array(time),
    policies: z.array(z.strictObject({ policy: z.string(), values: z.array(z.number().nullable()) })),
    gone: z.int().describe('Points that are left out, because their snapshots are no longer kept'),
  }),
  whatIf: z.strictObject({
    aggregate: z.string(),
    since: time,
    until: time,
    sets: z.array(z.string()),
    snapshots: z.int(),
    complete: z.boolean().describe('false: the time was up before the end of the range'),
    times: z.array(time),
    recorded: world,
    simulated: world,
  }),
  cooldowns: z.strictObject({
    aggregates: z.array(
      z.strictObject({
        aggregate: z.string(),
        cause: z.enum(['released', 'rejected', 'expired']),
        since: time,
        until: time,
      }),
    ),
    hosts: z.array(z.strictObject({ aggregate: z.string(), host: z.string(), until: time })),
    total: z.int().describe('VMs, also those beyond the limit'),
    vms: z.array(z.strictObject({ aggregate: z.string(), serverId: z.string(), serverName, until: time })),
  }),
  search: z.strictObject({
    query: z.string(),
    total: z.int().describe('All that fit, also those beyond the limit'),
    results: z.array(
      z.strictObject({
        kind: z.enum(['aggregate', 'host', 'vm', 'plan', 'task']),
        id: z.string(),
        name: z.string(),
        aggregate: z.string().nullable(),
        host: z.string().nullable(),
        planId: z.string().nullable(),
        sequence: sequence.nullable().describe('Of the decision that made a plan'),
        serverId: z.string().nullable(),
      }),
    ),
    namesSince: time.nullable().describe('Time of the oldest snapshot whose hosts and VMs were searched'),
  }),
  runbook: z.strictObject({ section: z.string(), text: z.string() }),
} as const;

/** The answer to every request that cannot be answered. */
export const refusal = z.strictObject({ error: z.string() });

type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export type Operation = keyof typeof answers;
export type ApiAnswer<O extends Operation> = DeepReadonly<z.infer<(typeof answers)[O]>>;
