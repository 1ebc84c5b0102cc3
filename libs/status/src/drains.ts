import { clause, count } from '@kronos/contracts';
import { type DrainFacts, drainLeft } from '@kronos/projections';
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

export function drainStatus(drain: DrainFacts): DrainStatus {
  const { host, asked } = drain;
  return { host, ...stateOf(drain), by: asked.by, sinceMs: asked.atMs, comment: asked.comment };
}

function stateOf(drain: DrainFacts): Pick<DrainStatus, 'state' | 'text'> {
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
  if (progress === null) return { state: 'leaving', text: 'disabled; the next decision moves its VMs away' };
  const left = count(drainLeft(drain) ?? 0, 'VM');
  if (progress.state !== 'stuck') {
    const waits = progress.waits.map(
      ({ text, count: waiting, serverName }) =>
        `${serverName}${waiting > 1 ? ` and ${waiting - 1} more` : ''} (${clause(text)})`,
    );
    const what = waits.length === 0 ? '' : `, which wait: ${waits.join('; ')}`;
    return { state: 'leaving', text: `disabled; ${left} on it${what}` };
  }
  const stuck = drainStuck(progress);
  const named = progress.stuck.map(({ serverName, reason }) => `${serverName} (${clause(reason.text)})`);
  const who = named.length === 0 ? '' : `: ${named.join('; ')}`;
  if (!stuck) return { state: 'leaving', text: `disabled; ${left} on it, which cannot move now${who}` };
  return { state: 'stuck', text: `stuck with ${left} that cannot leave${who}` };
}
