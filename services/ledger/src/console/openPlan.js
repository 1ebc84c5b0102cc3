/** The plan of an aggregate that matters at a moment, and its steps. */
import { nowMs, tryRead } from './api.js';
import { waitsForPerson } from './approval.js';
import { indexOf, planOfMoment } from './moment.js';
import { recorded } from './recorded.js';

/** The plan that the picture shows: of the moment, or the one that waits, runs or is not released now. */
function planAt({ page, series }, snapshot) {
  if (snapshot !== null) {
    const plan = planOfMoment(series, indexOf(series, snapshot));
    return plan === null ? null : { ...plan, runs: false, state: 'past' };
  }
  const open = page.plans.find((plan) => waitsForPerson(plan, nowMs())) ?? running(page);
  if (open !== undefined)
    return { id: open.id, sequence: open.sequence, runs: open.state === 'released', state: open.state };
  return page.standing === 'dryRun'
    ? { id: page.lastDecision.snapshotId, sequence: page.lastDecision.sequence, runs: false, state: 'dryRun' }
    : null;
}

/** The released plan with moves on these hosts: one between cells has none that the picture can show. */
function running({ plans, moves }) {
  const released = plans.filter(({ state }) => state === 'released');
  return released.find(({ id }) => moves.some(({ planId, phase }) => planId === id && phase !== 'cell')) ?? released[0];
}

/** A plan as it was recorded; of a past one that has not ended, what has happened meanwhile. */
async function answerOf({ id, sequence, state }) {
  const path = `/plans/${encodeURIComponent(id)}?sequence=${sequence}`;
  const known = await recorded(path);
  return state === 'past' && known.plan?.endedAt === null ? await tryRead(path) : known;
}

/** The steps of a plan; of one that runs, those under way: what has ended moves nothing any more. */
function stepsOf({ decision }, plan, page) {
  const steps = decision?.data.plan?.steps ?? [];
  if (!plan.runs) return steps;
  const open = new Set(page.moves.map(({ serverId }) => serverId));
  return steps.filter(({ serverId }) => open.has(serverId));
}

/** When the moves of a plan were completed, by VM. */
const doneIn = ({ events = [] }) =>
  new Map(events.flatMap(({ type, serverId, time }) => (type === 'migration.completed' ? [[serverId, time]] : [])));

/** The plan that the picture shows (null: there is none), its steps, and when their moves were completed. */
export async function openPlan({ page, series }, snapshot) {
  const plan = planAt({ page, series }, snapshot);
  if (plan === null) return { plan, steps: [], doneAt: new Map() };
  const answer = await answerOf(plan);
  return { plan, steps: stepsOf(answer, plan, page), doneAt: doneIn(answer) };
}
