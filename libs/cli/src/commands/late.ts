/** Why the services have not answered a request of a person in time. */
import { commandSnapshotId, timeMs } from '@kronos/contracts';
import type { Told } from '@kronos/operator';
import { type Alarm, statusOf } from '@kronos/status';
import type { OpenLog } from '../open.ts';
import type { Shell } from '../shell.ts';
import { readFacts } from '../status/facts.ts';
import { alarmLines } from '../status/render.ts';
import { span } from '../times.ts';

type Unanswered = {
  readonly what: 'decision' | 'plan' | 'snapshot';
  readonly asked: Pick<Told, 'commandId' | 'time'>;
  /** Those of which the answer is missing. */
  readonly aggregates: readonly string[];
  readonly waitMs: number;
};

/** The clock of this machine may be ahead of the server's. */
const EARLIER_MS = 60_000;
const ALARMS_SHOWN = 3;

/** The time from which the streams hold the answers to a request. */
export const askedSince = ({ time }: Pick<Told, 'time'>): Date => new Date(timeMs(time) - EARLIER_MS);

/** Says of each aggregate how far the request got, and which alarms explain that, with their remedies. */
export async function tellLate(
  shell: Shell,
  session: OpenLog,
  { what, asked, aggregates, waitMs }: Unanswered,
): Promise<void> {
  const { terminal } = shell;
  const since = askedSince(asked);
  const taken = new Set<string>();
  for await (const { message, problem } of session.log.replaySnapshots({ aggregates, since }))
    if (problem === undefined) taken.add(message.data.snapshotId);
  for (const aggregate of aggregates) {
    const snapshotId = commandSnapshotId(aggregate, asked.commandId);
    const where = taken.has(snapshotId) ? takenText(what, snapshotId) : 'no scorer has taken a snapshot for it';
    terminal.err(`${aggregate}: no ${what} within ${span(waitMs)}: ${where}.\n`);
  }
  const { alarms } = statusOf(await readFacts(shell, { ...session, scope: aggregates }));
  const why = alarms.filter(isOfServices);
  for (const line of why.slice(0, ALARMS_SHOWN).flatMap((alarm) => alarmLines(terminal, alarm)))
    terminal.err(`${line}\n`);
  if (why.length === 0) terminal.err('The logs of the scorer and the planner say why. Then run the command again.\n');
}

/** How far a request got whose snapshot was taken: a request to record asks no planner. */
export const takenText = (what: Unanswered['what'], snapshotId: string): string =>
  what === 'snapshot'
    ? `the snapshot ${snapshotId} came later`
    : `the snapshot ${snapshotId} was taken, and no planner has answered it`;

/** Alarms about a host, a VM or a plan explain no answer that is missing. */
const isOfServices = ({ severity, places }: Alarm): boolean =>
  severity === 'alarm' &&
  places.some(({ host, server, group, policy, task, plan, sink }) =>
    [host, server, group, policy, task, plan, sink].every((thing) => thing === undefined),
  );
