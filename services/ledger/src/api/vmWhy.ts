import type { StoredEvent } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { meaningOf, refusalText } from '@kronos/placement';
import type { Aside } from '../aside/aside.ts';
import type { Orders } from '../aside/work.ts';
import { loadInput, recordedIn } from './decisionInput.ts';
import type { Costly } from './input.ts';
import type { ApiAnswer } from './schemas.ts';

/** Destinations that an answer lists: the best ones. */
const SHOWN = 20;

export type ExplainVmInput = {
  readonly log: EventLog;
  readonly aside: Aside;
  /** Bounds the reads of the log at once. */
  readonly reading: Costly;
};

/** Why a VM moves or stays by the last decision, as `kronos explain vm` tells it: the decision is made again. */
export async function vmWhy(
  { log, aside, reading }: ExplainVmInput,
  stored: StoredEvent,
  serverId: string,
): Promise<Omit<ApiAnswer<'vmWhy'>, 'waits'>> {
  const recorded = recordedIn(stored);
  const { sequence, event } = recorded;
  const { aggregate, data } = event;
  const { snapshotId, snapshotTime: time, outcome, reason } = data;
  const head = { aggregate, serverId, decision: { sequence, time, snapshotId, outcome, reason } };
  const known = await aside.run('vm', { sequence, serverId, input: null });
  if (known !== 'unknown') return { ...head, missing: null, ...told(known) };
  const { decision, input: decide, missing } = await reading(() => loadInput(log, recorded));
  if (decide === null) return { ...head, same: null, vm: null, missing };
  const found = await aside.run('vm', { sequence, serverId, input: { decide, recorded: decision } });
  if (found === 'unknown') throw new Error('a decision that was given is unknown');
  return { ...head, missing: null, ...told(found) };
}

function told({ same, vm }: Exclude<Orders['vm']['answer'], 'unknown'>): Pick<ApiAnswer<'vmWhy'>, 'same' | 'vm'> {
  if (vm === null) return { same, vm: null };
  const { serverName, host, assumed, weights, groups, steps, verdict, destinations } = vm;
  return {
    same,
    vm: {
      serverName,
      host,
      assumed: assumed?.host ?? null,
      weights,
      groups,
      steps,
      verdict: { ...verdict, text: meaningOf(verdict.code) },
      destinations: {
        all: destinations.length,
        legal: destinations.filter(({ refusal }) => refusal === null).length,
        best: destinations.slice(0, SHOWN).map((one) => {
          const { host: to, refusal, combined, gain, worsens } = one;
          const text = refusalText(one);
          return {
            host: to,
            refusal: refusal === null || text === null ? null : { code: refusal, text },
            combined,
            gain,
            worsens,
          };
        }),
      },
    },
  };
}
