import {
  ALL,
  type CycleDecided,
  clause,
  commandSnapshotId,
  count,
  decisionWords,
  type Message,
  releaseWords,
  timeMs,
} from '@kronos/contracts';
import { control, type Told } from '@kronos/operator';
import { collect } from '@kronos/replay';
import { figure } from '../numbers.ts';
import { withSession } from '../open.ts';
import { answer } from '../output.ts';
import { whileWaiting } from '../progress.ts';
import { chooseAddresses } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';
import { parseDuration, said } from '../times.ts';
import { giveEach } from './give.ts';
import { askedSince, tellLate } from './late.ts';
import type { TargetOptions } from './operator.ts';

export type EvaluateOptions = TargetOptions & { readonly wait: string };

/** kronos evaluate. */
export async function requestEvaluation(shell: Shell, options: EvaluateOptions): Promise<void> {
  const waitMs = parseDuration('--wait', options.wait);
  await withSession(shell, options, async (session) => {
    const all = options.all === true;
    const addresses = chooseAddresses(session.scope, { names: options.aggregate, all }, 'evaluate');
    const asked = await giveEach({ shell, session, options }, addresses, (address, _, asking) =>
      control('evaluation.requested', address, { purpose: 'evaluate' }, asking),
    );
    if (waitMs === 0) {
      await answer(shell, options, asked.length === 1 ? asked[0] : asked, () =>
        asked.map((one) => `${one.text}: ${one.commandId}\n`).join(''),
      );
      return;
    }
    const addressed = ({ aggregate }: Told): readonly string[] => (aggregate === ALL ? session.scope : [aggregate]);
    const ids = new Map(
      asked.flatMap((one) => addressed(one).map((name) => [commandSnapshotId(name, one.commandId), name] as const)),
    );
    const [first] = asked;
    const since = first === undefined ? 'new' : askedSince(first);
    const decided = await whileWaiting(
      shell,
      { what: count(ids.size, 'decision'), atMostMs: waitMs },
      collect(
        session.log.tail({ families: ['plans', 'snapshots'], aggregates: [...ids.values()], since }),
        answerTo(ids),
        ids.size,
        AbortSignal.timeout(waitMs),
      ),
    );
    const decisions = decided.map((event) => event.data);
    await answer(shell, options, { ...(asked.length === 1 ? asked[0] : { asked }), decisions }, (terminal) =>
      decided.map((event) => decisionText(terminal, event, shell.now())).join(''),
    );
    for (const asking of asked) {
      const silent = addressed(asking).filter((name) => !decided.some(({ aggregate }) => aggregate === name));
      if (silent.length === 0) continue;
      await tellLate(shell, session, { what: 'decision', asked: asking, aggregates: silent, waitMs });
      process.exitCode = 1;
    }
  });
}

/**
 * Picks the decision that answers the request of each aggregate: that of its own snapshot, or of a later one, after which its own is never decided.
 *
 * @param ids aggregates by the ids of their own snapshots
 */
export function answerTo(ids: ReadonlyMap<string, string>): (message: Message) => CycleDecided | null {
  const takenMs = new Map<string, number>();
  const decided = new Map<string, CycleDecided[]>();
  const answered = new Set<string>();
  const found = (aggregate: string): CycleDecided | null => {
    const ownMs = takenMs.get(aggregate) ?? Number.POSITIVE_INFINITY;
    const event = decided
      .get(aggregate)
      ?.find(({ data }) => ids.has(data.snapshotId) || timeMs(data.snapshotTime) >= ownMs);
    if (event === undefined || answered.has(aggregate)) return null;
    answered.add(aggregate);
    return event;
  };
  return (message) => {
    const { aggregate } = message;
    if (message.type === 'cycle.decided') decided.set(aggregate, [...(decided.get(aggregate) ?? []), message]);
    else if (message.type === 'snapshot.taken' && ids.has(message.data.snapshotId))
      takenMs.set(aggregate, timeMs(message.time));
    return found(aggregate);
  };
}

/** One decision in a line. */
export function decisionText(terminal: Terminal, { aggregate, data }: CycleDecided, nowMs: number): string {
  const steps = data.plan === null ? '' : ` (${count(data.plan.steps.length, 'move')}, ${releaseWords[data.release]})`;
  const imbalance = data.before.combined === null ? '' : ` (combined imbalance ${figure(data.before.combined)})`;
  return `${aggregate}: ${paint(terminal, data.outcome === 'planned' ? 'green' : 'yellow', decisionWords[data.outcome])}${steps}: ${said(clause(data.reason.text), nowMs)}${imbalance}\n`;
}
