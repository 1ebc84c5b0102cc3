import { ALL, type Control, clause } from '@kronos/contracts';
import { digest } from '@kronos/cycle';
import {
  type Asking,
  addressedPlan,
  addressedTask,
  aggregateOfDrain,
  askedDrain,
  CommandRefused,
  choosePlan,
  commandTypes,
  control,
  eventsToSkip,
  foresee,
  knownAggregates,
  type TaskCommand,
  taskCommand,
} from '@kronos/operator';
import { aggregateState, type LogState, type PlanFacts, type UnreadableFact } from '@kronos/projections';
import type { CommandRequest } from '../api/commandSchemas.ts';
import type { ApiAnswer } from '../api/schemas.ts';

type CellsPlan = Extract<CommandRequest, { readonly command: 'cellsPlan' }>;

/** The effect of a command, as the person sees it before the confirmation. */
export type Foreseen = {
  readonly event: Control;
  readonly effect: 'done' | 'unchanged' | 'refused';
  /** The outcome by the log, then the details. */
  readonly says: readonly string[];
  readonly planId: string | null;
  /** The digest of the command and of all that it is about: a confirmation names it, and holds while it is the same. */
  readonly digest: string;
};

/** The person confirmed another effect than the command would have now. */
export class Changed extends Error {}

/**
 * A command of a person on the state, and its effect. Pure.
 *
 * @throws CommandRefused where it cannot mean anything
 */
export function foreseen(state: LogState, scope: readonly string[], command: CommandRequest, asking: Asking): Foreseen {
  const { event, about, details, planId } = made({ state, scope, asking }, command);
  const { effect, text } = foresee(event, state);
  const { commandId: _, comment: __, ...data } = event.data;
  const { type, aggregate } = event;
  return { event, effect, says: [text, ...details], planId, digest: digest({ type, aggregate, data, about }) };
}

/** The same, when the person has confirmed it. @throws Changed, CommandRefused */
export function confirmedCommand(
  state: LogState,
  scope: readonly string[],
  { command, digest: read }: { readonly command: CommandRequest; readonly digest: string },
  asking: Asking,
): Control {
  const now = foreseen(state, scope, command, asking);
  if (now.digest !== read)
    throw new Changed(`what you confirmed has changed since you read it; now: ${now.says.join('; ')}`);
  if (now.effect === 'refused') throw new CommandRefused(now.says[0] ?? 'it would have no effect');
  return now.event;
}

type Made = {
  readonly event: Control;
  /** The current state of the command's subject: the digest covers it beside the command. */
  readonly about: unknown;
  readonly details: readonly string[];
  readonly planId: string | null;
};

type Named<C extends CommandRequest['command']> = Extract<CommandRequest, { readonly command: C }>;
type Context = { readonly state: LogState; readonly scope: readonly string[]; readonly asking: Asking };

const plain = (event: Control, about: unknown = null): Made => ({ event, about, details: [], planId: null });

/** Each command as an event. Those of one kind share their maker. */
const makers: { readonly [C in CommandRequest['command']]: (context: Context, command: Named<C>) => Made } = {
  pause: pausing,
  resume: pausing,
  evaluate: evaluating,
  record: evaluating,
  approve: answering,
  reject: answering,
  cancel: ending,
  abort: ending,
  confirm: ending,
  revert: ending,
  close: ending,
  quarantine({ scope, asking }, { aggregate: name, serverId, seconds }) {
    const [aggregate = ''] = knownAggregates(scope, [name]);
    return plain(control('instance.quarantined', aggregate, { serverId, seconds }, asking));
  },
  // A release reaches the quarantine wherever it was set.
  release: ({ asking }, { serverId }) => plain(control('instance.unquarantined', ALL, { serverId }, asking)),
  drain({ state, scope, asking }, { aggregate: name, host }) {
    const [aggregate = ''] = knownAggregates(scope, [name]);
    return plain(control('host.drainAsked', aggregate, { host }, asking), askedDrain(state, host));
  },
  undrain({ state, scope, asking }, { host }) {
    const aggregate = aggregateOfDrain(state, scope, host);
    return plain(control('host.undrainAsked', aggregate, { host }, asking), askedDrain(state, host));
  },
  cellsPlan({ scope, asking }, command) {
    const [aggregate = ''] = knownAggregates(scope, [command.aggregate]);
    const { host, to, flavorMap, servers, project, limit } = command;
    const from = [host ?? aggregate];
    const event = control('cells.moveAsked', aggregate, { from, to, flavorMap, servers, project, limit }, asking);
    return { event, about: null, details: cellsLines(command), planId: null };
  },
  skip({ state, asking }, command) {
    const { sequence, through } = command;
    const { aggregate, events } = eventsToSkip(state, command, command);
    const event = control('event.skipped', aggregate, { sequence, through }, asking);
    return { event, about: events, details: skipLines(events), planId: null };
  },
};

function made(context: Context, command: CommandRequest): Made {
  const make = makers[command.command] as (context: Context, command: CommandRequest) => Made;
  return make(context, command);
}

function pausing({ state, scope, asking }: Context, command: Named<'pause' | 'resume'>): Made {
  const aggregate = address(scope, command.aggregate);
  const was = aggregate === ALL ? state.all.paused : aggregateState(state, aggregate).paused.here;
  return plain(control(commandTypes[command.command], aggregate, {}, asking), was?.commandId ?? null);
}

function evaluating({ scope, asking }: Context, { aggregate, command }: Named<'evaluate' | 'record'>): Made {
  return plain(control('evaluation.requested', address(scope, aggregate), { purpose: command }, asking));
}

function answering({ state, scope, asking }: Context, command: Named<'approve' | 'reject'>): Made {
  const { steps } = command;
  const { aggregate, planId } = choosePlan(state, scope, asking.nowMs, { planId: command.planId, steps });
  const plan = addressedPlan(state, aggregate, planId)?.plan ?? null;
  const event = control(commandTypes[command.command], aggregate, { planId, steps }, asking);
  return { event, about: planContent(plan), details: plan === null ? [] : stepLines(plan, steps), planId };
}

function ending({ state, scope, asking }: Context, command: Named<TaskCommand>): Made {
  const event = taskCommand(state, scope, { force: false, ...command }, asking);
  const task = addressedTask(state, event.aggregate, command.taskId);
  const about = task === null ? null : { attempt: task.attempt, status: task.status, destination: task.destination };
  return plain(event, about);
}

const address = (scope: readonly string[], aggregate: string): string =>
  aggregate === ALL ? ALL : (knownAggregates(scope, [aggregate])[0] ?? '');

/** The decision that a person answers, and its steps that still wait. */
const planContent = (plan: PlanFacts | null): unknown =>
  plan === null ? null : { sequence: plan.sequence, proposed: plan.proposed, rejected: plan.rejected };

/** The request, and the next steps. */
const cellsLines = ({ aggregate, host, flavorMap, servers, project, limit }: CellsPlan): string[] => [
  `of ${host === null ? `all hosts of ${aggregate}` : host}: ${servers === null ? 'every server' : servers.join(', ')}${project === null ? '' : ` of the project ${project}`}`,
  ...Object.entries(flavorMap).map(([old, next]) => `flavor ${old} becomes ${next}: these servers are resized`),
  `at most ${limit === null ? 'as many moves as a plan holds' : limit === 1 ? '1 move' : `${limit} moves`}; the servers are off during their moves`,
  'The plan waits for approval. Nothing moves before that.',
];

/** The skipped events, and the consequence. */
const skipLines = (events: readonly UnreadableFact[]): string[] => [
  ...events.map(({ sequence, through, claimedType, problem }) => {
    const which = through === sequence ? `event ${sequence}` : `events ${sequence} to ${through}`;
    return `${which} (${claimedType}): ${problem}`;
  }),
  `Kronos plans as if ${events.length === 1 ? 'this event' : 'these events'} had never been written.`,
];

export type DrainAnswer = Pick<ApiAnswer<'hostDrain'>, 'host' | 'blockedBy' | 'moves' | 'waiting' | 'stuck'>;

/** The destinations of a host's VMs. Each snapshot can change them: the digest does not cover them. */
export const drainLines = ({ moves, waiting, stuck }: DrainAnswer): string[] => [
  ...moves.map(({ serverName, to }) => `${serverName} → ${to}`),
  ...waiting.map(({ serverName, reason }) => `${serverName} leaves later: ${clause(reason.text)}`),
  ...stuck.map(({ serverName, reason }) => `${serverName} cannot leave: ${clause(reason.text)}`),
];

const stepLines = (plan: PlanFacts, steps: readonly number[] | null): string[] =>
  plan.proposed
    .filter(({ step }) => steps === null || steps.includes(step))
    .map(({ step, serverName, serverId, from, to }) => `step ${step}: ${serverName} (${serverId}) ${from} → ${to}`);
