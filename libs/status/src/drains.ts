import { clause, count, span } from '@kronos/contracts';
import { type AggregateState, type DrainFacts, drainLeft, inFlight, planTime } from '@kronos/projections';
import { drainStuck } from '@kronos/rules';

/** The progress of a host's drain. */
export type DrainStatus = {
  readonly host: string;
  /**
   * `disabling`: the service is not disabled yet. `leaving`: its VMs leave. `stuck`: none of those that are left can. `drained`: no
   * VM is left. `ending`: its end was asked for.
   */
  readonly state: 'disabling' | 'leaving' | 'stuck' | 'drained' | 'ending';
  readonly text: string;
  /** The person who asked for it, when, and why. */
  readonly by: string;
  readonly sinceMs: number;
  readonly comment: string | null;
};

/** The parts of the state that a drain's progress depends on. */
type Moving = Pick<AggregateState, 'plans' | 'tasks' | 'paces' | 'pairPaces'>;

/** The progress of a drain, by the folded log. */
export function drainStatus(state: Moving, drain: DrainFacts): DrainStatus {
  const { host, asked } = drain;
  return { host, ...stateOf(state, drain), by: asked.by, sinceMs: asked.atMs, comment: asked.comment };
}

function stateOf(aggregate: Moving, drain: DrainFacts): Pick<DrainStatus, 'state' | 'text'> {
  const { undrainAsked, drained, disabled, failure, progress } = drain;
  if (undrainAsked !== null)
    return {
      state: 'ending',
      text: failure === null ? 'its service is being enabled' : `its service is not enabled: ${failure.text}`,
    };
  if (drained !== null) return { state: 'drained', text: 'drained: no VM is left on it' };
  if (disabled === null)
    return {
      state: 'disabling',
      text: failure === null ? 'its service is being disabled' : `its service is not disabled: ${failure.text}`,
    };
  if (progress === null) return { state: 'leaving', text: 'disabled; the next plan moves its VMs away' };
  const left = count(drainLeft(drain) ?? 0, 'VM');
  const ahead = aheadText(aggregate, drain);
  if (progress.state !== 'stuck') {
    const waits = progress.waits.map(
      ({ text, count: alike, serverName }) =>
        `${serverName}${alike > 1 ? ` and ${alike - 1} more` : ''} (${clause(text)})`,
    );
    const waiting = progress.waits.reduce((sum, { count: alike }) => sum + alike, 0);
    const which = waiting < (drainLeft(drain) ?? 0) ? `of which ${waiting}` : 'which';
    const what = waits.length === 0 ? '' : `, ${which} ${waiting === 1 ? 'waits' : 'wait'}: ${waits.join('; ')}`;
    return { state: 'leaving', text: `disabled; ${left} on it${ahead}${what}` };
  }
  const stuck = drainStuck(progress);
  const named = progress.stuck.map(({ serverName, reason }) => `${serverName} (${clause(reason.text)})`);
  const who = named.length === 0 ? '' : `: ${named.join('; ')}`;
  if (!stuck) return { state: 'leaving', text: `disabled; ${left} on it${ahead}, which cannot move now${who}` };
  return { state: 'stuck', text: `stuck with ${left} that cannot leave${who}` };
}

/** How many of its VMs are in moves, and about when it is empty; nothing while none is. */
function aheadText(state: Moving, drain: DrainFacts): string {
  const moves = inFlight(state).filter(({ step }) => step.from === drain.host);
  const left = drainLeft(drain) ?? 0;
  const time = planTime(
    state,
    moves.map(({ step }) => step),
    [],
  );
  if (time === null || left === 0) return '';
  const underWay = moves.filter(({ slot }) => slot !== null).length;
  const later = Math.max(0, left - moves.length);
  // Moves off one host follow each other: those to come take as long as these.
  const wholeMs = (time.expectedMs / moves.length) * Math.max(left, moves.length);
  const when = `empty after about ${span(wholeMs)} of moves${time.measured ? '' : ' (assumed pace)'}`;
  return `, ${moves.length} of them in moves (${underWay} under way)${later === 0 ? '' : `, ${later} in later plans`}; ${when}`;
}
