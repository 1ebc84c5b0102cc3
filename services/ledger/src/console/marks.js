/** What the time bar marks: plans, moves, pauses and drains, each with what happened and where to read why. Pure except for the links. */
import { count, link, ratioText, said } from './parts.js';

const KINDS = {
  'aggregate.paused': 'pause',
  'aggregate.resumed': 'pause',
  'host.drainAsked': 'drain',
  'host.drained': 'drain',
  'host.undrainAsked': 'drain',
  'plan.approved': 'person',
  'plan.rejected': 'person',
};
/** Newer marks hide older ones where there are more. */
const MOST = 150;

const momentBefore = ({ times, snapshotIds }, time) => snapshotIds[times.findLastIndex((at) => at <= time)];

/** The address of the moment of an event: the newest cycle before it. */
export const momentOf = (name, series, time) => link.aggregate(name, momentBefore(series, time));

export function marksOf(name, { series, recent, history, moved }) {
  const plans = recent.decisions
    .filter(({ steps }) => steps > 0)
    .map((d) => ({
      ms: Date.parse(d.time),
      kind: 'plan',
      text: `Plan of ${count(d.steps, 'move')}: ${ratioText(d.ratio)} to ${ratioText(d.ratioAfter)}`,
      href: link.plan(d.snapshotId, d.sequence),
    }));
  const moves = moved.moves
    .filter(({ startedAt }) => startedAt !== null)
    .map((m) => ({
      ms: Date.parse(m.startedAt),
      kind: m.outcome === 'failed' || m.outcome === 'damaged' ? 'failed' : 'moved',
      text: `${m.serverName ?? m.serverId}: ${m.from} to ${m.to}`,
      href: link.vm(name, m.serverId, momentBefore(series, m.startedAt)),
    }));
  const acts = history.events
    .filter(({ type, time }) => KINDS[type] !== undefined && time !== null)
    .map((e) => ({
      ms: Date.parse(e.time),
      kind: KINDS[e.type],
      text: said(e.text),
      href: momentOf(name, series, e.time),
    }));
  const all = [...moves, ...acts, ...plans];
  return all.length <= MOST ? all : all.toSorted((a, b) => a.ms - b.ms).slice(-MOST);
}
