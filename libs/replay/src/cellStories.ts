import {
  DAY_MS,
  type LogEvent,
  makesRoom,
  type ObjectRef,
  type PlanProposed,
  type ProposalDecision,
  type Reason,
  type Step,
  type StoredEvent,
  timeOf,
} from '@kronos/contracts';
import { startable, waitsSeconds, windowClosed } from '@kronos/projections';
import { approval } from '@kronos/rules';
import { isUnusable, recordedProposal } from './compare.ts';
import type { History } from './history.ts';

/** The states of a VM's move between cells. */
export const cellStoryStates = [
  /** The plan names it as one that cannot move. */
  'stays',
  /** The plan was a dry run's. */
  'dryRun',
  /** No plan of that moment may start. */
  'notReleased',
  'waitsForApproval',
  /** Nobody answered in time. */
  'expired',
  'rejected',
  /** Only other steps of the plan were approved. */
  'leftOut',
  /** Its window had closed when the plan was approved. */
  'windowClosed',
  'approved',
  /** Verified, and a person has to confirm or to revert it. */
  'waitsForPerson',
  'ended',
] as const;
type CellStoryState = (typeof cellStoryStates)[number];

/** The story of a VM in one plan between cells, by the log. */
export type CellStory = {
  /** The aggregate that the plan's VMs leave. */
  readonly aggregate: string;
  readonly planId: string;
  /** The aggregate that they go to. */
  readonly to: string;
  /** Of the plan's event. */
  readonly sequence: number;
  readonly proposedAtMs: number;
  /** The last moment of the approval; ms since the epoch. */
  readonly expiresAtMs: number;
  readonly serverId: string;
  readonly serverName: string;
  /** Its move; null: it stays. */
  readonly step: Step | null;
  /** Why it moves or stays; null: the reasons of the plan are not kept any more. */
  readonly reason: Reason | null;
  readonly state: CellStoryState;
  /** The answer to the plan and what became of the move, oldest first. */
  readonly events: readonly StoredEvent[];
};

/** A plan between cells with its whole decision. */
export type WholeProposal = {
  readonly sequence: number;
  /** See `timeOf`. */
  readonly timeMs: number;
  readonly event: PlanProposed;
  readonly decision: ProposalDecision;
};

type Is = (serverId: string, serverName: string) => boolean;

/** Maximum number of plans that are told of one VM: the newest. */
const TOLD = 5;
/** Older plans are not told: their approval and their tasks have ended, as each lasts at most 7 days. */
const TOLD_FOR_MS = 30 * DAY_MS;

/**
 * The stories of a VM, the newest plan first. Pure.
 *
 * @param plans in the order of the log
 * @param events in the order of the log, from the first of the plans at the latest
 */
export function cellStoriesOf(
  plans: readonly WholeProposal[],
  events: readonly StoredEvent[],
  is: Is,
  nowMs: number,
): CellStory[] {
  return plans
    .flatMap((plan) => storyOf(plan, events, is, nowMs) ?? [])
    .reverse()
    .slice(0, TOLD);
}

const UNRELEASED: Readonly<Partial<Record<PlanProposed['data']['release'], CellStoryState>>> = {
  dryRun: 'dryRun',
  none: 'notReleased',
};

function storyOf(
  { sequence, timeMs, event, decision }: WholeProposal,
  events: readonly StoredEvent[],
  is: Is,
  nowMs: number,
): CellStory | null {
  const { planId, to, approvalTtlSeconds } = event.data;
  const step = decision.steps.find(({ serverId, serverName }) => is(serverId, serverName)) ?? null;
  const refused = decision.refused.find(({ serverId, serverName }) => is(serverId, serverName));
  const named = step ?? refused;
  if (named === undefined) return null;
  const waits = waitsSeconds(approvalTtlSeconds, startable(decision.steps, timeMs), timeMs);
  const proposal = { proposedAtMs: timeMs, approvalTtlSeconds: waits };
  const { expiresAtMs, open } = approval(proposal, nowMs);
  const head = {
    aggregate: event.aggregate,
    planId,
    to,
    sequence,
    proposedAtMs: timeMs,
    expiresAtMs,
    serverId: named.serverId,
    serverName: named.serverName,
    step,
    reason: step === null ? (refused?.reason ?? null) : (step.why ?? null),
  };
  if (step === null) return { ...head, state: 'stays', events: [] };
  const unreleased = UNRELEASED[event.data.release];
  if (unreleased !== undefined) return { ...head, state: unreleased, events: [] };
  const after = events.filter((stored) => stored.sequence > sequence);
  const own = after.filter(
    ({ event: one }) => one.type !== 'unreadable' && 'taskId' in one.data && one.data.taskId === step.taskId,
  );
  for (const stored of after) {
    const answer = answerTo(stored, planId, step);
    if (answer === null || !approval(proposal, timeOf(stored)).open) continue;
    if (answer === 'approved') return { ...head, state: movedState(step, own), events: [stored, ...own] };
    return { ...head, state: answer, events: [stored] };
  }
  return { ...head, state: open ? 'waitsForApproval' : 'expired', events: [] };
}

/** The answer of an event to a step of a plan; null: it has none. */
function answerTo(
  stored: StoredEvent,
  planId: string,
  step: Step,
): Extract<CellStoryState, 'approved' | 'rejected' | 'leftOut' | 'windowClosed'> | null {
  const { event: answer } = stored;
  if ((answer.type !== 'plan.approved' && answer.type !== 'plan.rejected') || answer.data.planId !== planId)
    return null;
  const named = answer.data.steps === null || answer.data.steps.includes(step.step);
  if (answer.type === 'plan.approved') {
    if (!named) return 'leftOut';
    return windowClosed(step, timeOf(stored)) ? 'windowClosed' : 'approved';
  }
  // Its other steps can still be approved.
  return named ? 'rejected' : null;
}

function movedState(step: Step, own: readonly StoredEvent[]): CellStoryState {
  const of = (type: LogEvent['type']): boolean => own.some(({ event }) => event.type === type);
  const failed = own.some(({ event }) => event.type === 'migration.failed' && !event.data.retryPending);
  if (failed || of('migration.completed') || of('migration.skipped')) return 'ended';
  const asked = of('migration.confirmAsked') || of('migration.revertAsked');
  const verified = own.at(-1)?.event.type === 'migration.verified';
  return verified && step.cell?.confirm === 'manual' && !asked ? 'waitsForPerson' : 'approved';
}

/** The decision with what its event leaves out; where that is not kept any more, as the event has it. */
export async function wholeProposal(
  details: (ref: ObjectRef) => Promise<Uint8Array>,
  { data }: PlanProposed,
): Promise<ProposalDecision> {
  try {
    return recordedProposal(data, data.details === null ? null : await details(data.details));
  } catch (error) {
    if (isUnusable(error)) return recordedProposal(data, null);
    throw error;
  }
}

/** The newest plans of the time before that name a VM, with their decisions, by their sequences. */
async function plansWith(history: History, is: Is, untilMs: number): Promise<ReadonlyMap<number, ProposalDecision>> {
  const decisions = new Map<number, ProposalDecision>();
  for await (const { sequence, event } of history.proposals({ sinceMs: untilMs - TOLD_FOR_MS, untilMs })) {
    if (makesRoom(event)) continue;
    const decision = await wholeProposal((ref) => history.details(ref), event);
    const named = [...decision.steps, ...decision.refused];
    if (named.some(({ serverId, serverName }) => is(serverId, serverName))) decisions.set(sequence, decision);
    const [oldest] = decisions.keys();
    if (oldest !== undefined && decisions.size > TOLD) decisions.delete(oldest);
  }
  return decisions;
}

/**
 * The stories of a VM in the 30 days up to a time (ms since the epoch), by the log of every aggregate: its move takes it out of
 * one.
 */
export async function findCellStories(history: History, is: Is, untilMs: number): Promise<CellStory[]> {
  const decisions = await plansWith(history, is, untilMs);
  const [from] = decisions.keys();
  if (from === undefined) return [];
  const plans: WholeProposal[] = [];
  const tasks = new Set<string>();
  const events: StoredEvent[] = [];
  for await (const stored of history.events(undefined, from)) {
    const { sequence, event } = stored;
    if (event.type === 'unreadable' || timeOf(stored) > untilMs) continue;
    const decision = decisions.get(sequence);
    if (event.type === 'plan.proposed' && decision !== undefined) {
      plans.push({ sequence, timeMs: timeOf(stored), event, decision });
      for (const step of decision.steps) if (is(step.serverId, step.serverName)) tasks.add(step.taskId);
    }
    const isAnswer = event.type === 'plan.approved' || event.type === 'plan.rejected';
    if (isAnswer || ('taskId' in event.data && tasks.has(event.data.taskId))) events.push(stored);
  }
  return cellStoriesOf(plans, events, is, untilMs);
}
