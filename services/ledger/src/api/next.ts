import { byText, iso, timeMs } from '@kronos/contracts';
import { type AggregateState, hostBroken, inFlight, optionsOf, pauseInForce } from '@kronos/projections';
import type { DecisionPoint } from '../memory/history.ts';
import type { ServerNameOf } from './names.ts';
import type { ApiAnswer } from './schemas.ts';
import { type aggregateSummary, quarantinePage } from './stateJson.ts';

type Coming = ApiAnswer<'aggregate'>['next'][number];

/** The next events of an aggregate, in the order of time. Pure. */
export function comingUp(
  state: AggregateState,
  summary: ReturnType<typeof aggregateSummary>,
  { decisions, nameOf }: { readonly decisions: readonly Pick<DecisionPoint, 'time'>[]; readonly nameOf: ServerNameOf },
  nowMs: number,
): Coming[] {
  const { unreadable, waitingPlan, cooldown, drains } = summary;
  if (unreadable !== null)
    return [
      {
        at: null,
        what: 'blocked',
        text: `Nothing is planned until event ${unreadable.sequence} can be read or is skipped.`,
      },
    ];
  const pause = pauseInForce(summary);
  const coming: Coming[] = [];
  if (pause !== null)
    coming.push({
      at: null,
      what: 'blocked',
      text: `Nothing is planned until somebody resumes it: paused by ${pause.by}.`,
    });
  if (waitingPlan !== null)
    coming.push({
      at: waitingPlan.expiresAt,
      what: 'approval',
      text: 'The proposed plan expires unless somebody approves it: nothing moves, and the planner plans anew.',
    });
  const waiting = inFlight(state).filter(({ slot }) => slot === null);
  const first = waiting.reduce<(typeof waiting)[number] | null>(
    (least, task) => (least === null || task.notBeforeMs < least.notBeforeMs ? task : least),
    null,
  );
  if (first !== null)
    coming.push({
      at: first.notBeforeMs > nowMs ? iso(first.notBeforeMs) : null,
      what: 'move',
      text: `${first.step.serverName} moves to ${first.destination}${waiting.length === 1 ? '' : `, and ${waiting.length - 1} more after it`}.`,
    });
  for (const { host, text } of drains) coming.push({ at: null, what: 'drain', text: `Drain of ${host}: ${text}.` });
  if (pause === null) coming.push(cycleOf(decisions, nowMs));
  if (cooldown !== null)
    coming.push({ at: cooldown.until, what: 'cooldown', text: 'The cooldown ends: plans are made again.' });
  const options = optionsOf(state);
  for (const host of state.hostFailures.keys()) {
    const until = hostBroken(state, host, nowMs, options);
    if (until !== null) coming.push({ at: iso(until), what: 'host', text: `${host} may be a destination again.` });
  }
  coming.push(...released(state, nameOf, nowMs));
  return coming.sort((a, b) => byText(a.at ?? '', b.at ?? '')).slice(0, SHOWN);
}

/** The ends of quarantines. */
const released = (state: AggregateState, nameOf: ServerNameOf, nowMs: number): Coming[] =>
  quarantinePage(state, nowMs).flatMap(({ serverId, serverName, until }) =>
    until === null
      ? []
      : [
          {
            at: until,
            what: 'quarantine',
            text: `The quarantine of ${serverName ?? nameOf(serverId) ?? serverId} ends.`,
          },
        ],
  );

const SHOWN = 10;

/** The next snapshot, as far from the last one as that was from the one before. */
function cycleOf(decisions: readonly Pick<DecisionPoint, 'time'>[], nowMs: number): Coming {
  const [before, last] = decisions.slice(-2).map(({ time }) => timeMs(time));
  const text = 'The planner takes the next decision.';
  if (before === undefined || last === undefined) return { at: null, what: 'cycle', text };
  const atMs = last + (last - before);
  return { at: atMs > nowMs ? iso(atMs) : null, what: 'cycle', text };
}
