/** Why a VM moves or stays, for people. Pure. */
import { clause, type Decision, iso, sentence, timeOf } from '@kronos/contracts';
import { type Assumed, meaningOf } from '@kronos/placement';
import type { DamagedMove } from '@kronos/projections';
import type { CellStory, Explained } from '@kronos/replay';
import { authorText } from '../names.ts';
import { figure } from '../numbers.ts';
import { reasonLine } from '../plans/decision.ts';
import { methodText, RELEASES } from '../plans/proposal.ts';
import { paint, type Terminal } from '../terminal.ts';
import { absolute, said, when } from '../times.ts';
import { policyValues } from './cycle.ts';
import { destinationsText } from './plan.ts';

/** The statements of a decision about a VM. */
export function mentions(decision: Decision, is: (id: string, name: string) => boolean): string[] {
  const steps = decision.plan?.steps
    .filter((s) => is(s.serverId, s.serverName))
    .map(
      (s) => `step ${s.step} moves it from ${s.from} to ${s.to}${s.why === undefined ? '' : `: ${clause(s.why.text)}`}`,
    );
  const stuck = decision.stuck
    .filter((s) => is(s.serverId, s.serverName))
    .map((s) => `it cannot leave ${s.host}: ${clause(reasonLine(s.reason))}`);
  return [...(steps ?? []), ...stuck];
}

/** Moves before this decision that left their servers in ERROR. */
export const damagedLines = (
  terminal: Terminal,
  { state }: Explained,
  concerns: (move: DamagedMove) => boolean,
): string =>
  [...state.damaged.values()]
    .filter(concerns)
    .map(
      ({ serverName, from, destination, atMs, taskId, reasons }) =>
        `${paint(terminal, 'red', `${serverName} was in ERROR after its move from ${from} to ${destination}`)} (${iso(atMs)}, ${taskId}): ${reasons.map(({ text }) => text).join('; ')}\n`,
    )
    .join('');

/** The part of a VM in a decision, for people. */
export function vmText(
  terminal: Terminal,
  explained: Explained,
  {
    id,
    is,
    nowMs,
  }: { readonly id: string; readonly is: (id: string, name: string) => boolean; readonly nowMs: number },
): string {
  const vm = explained.explanation?.vm(id) ?? null;
  const damaged = damagedLines(terminal, explained, (move) => move.serverId === id);
  const mentioned = mentions(explained.decision, is)
    .map((line) => `${line}\n`)
    .join('');
  if (vm === null) return `${damaged}${mentioned === '' ? 'The decision does not mention it.\n' : mentioned}`;
  const detail = Object.entries(vm.verdict.detail).map(
    ([key, value]) => `${key} ${typeof value === 'number' ? figure(value) : said(String(value), nowMs)}`,
  );
  const verdict =
    vm.steps.length > 0
      ? mentioned
      : `it stays: ${clause(meaningOf(vm.verdict.code))}${detail.length === 0 ? '' : ` (${detail.join(', ')})`}\n${mentioned}`;
  return [
    `${vm.serverName} (${vm.serverId}) on ${vm.host}${vm.assumed === null ? '' : `, ${assumedText(vm.assumed)}`}\n`,
    damaged,
    verdict,
    `its weight: ${policyValues(vm.weights)}${vm.groups.length === 0 ? '' : `; in ${vm.groups.length === 1 ? 'group' : 'groups'} ${vm.groups.join(', ')}`}\n\n`,
    vm.refusal === null
      ? destinationsText(terminal, 'if it went to', vm.destinations)
      : destinationsText(terminal, 'if it could move to', vm.destinations, 'takes it'),
  ].join('');
}

/** One plan between cells as it concerns a VM: what it says of the VM, who answered it, and what became of the move. */
export function cellStoryText(terminal: Terminal, story: CellStory, nowMs: number): string {
  const { aggregate, to, planId, proposedAtMs, expiresAtMs, serverName, step, reason, state, events } = story;
  const why = reason === null ? '' : `: ${clause(reasonLine(reason))}`;
  const what =
    step === null
      ? `it stays${why}`
      : `step ${step.step} moves it from ${step.from} to ${step.to} (${methodText(step)})${why}`;
  const ends: Readonly<Record<CellStory['state'], string | null>> = {
    stays: null,
    dryRun: RELEASES.dryRun,
    notReleased: RELEASES.none,
    waitsForApproval: `waits for approval until ${when(expiresAtMs, nowMs)}: kronos approve ${planId}`,
    expired: `expired at ${absolute(expiresAtMs, nowMs)}: nobody approved it`,
    rejected: null,
    leftOut: 'its step was not approved, so it stays',
    windowClosed: 'its window had closed before the approval, so it stays',
    approved: null,
    waitsForPerson: `waits for a person: kronos cells confirm|revert ${step?.taskId ?? ''}`,
    ended: null,
  };
  const next = ends[state];
  return [
    `plan between cells ${paint(terminal, 'bold', planId)} (${aggregate} -> ${to}), ${when(proposedAtMs, nowMs)}:\n`,
    `  ${what}\n`,
    ...events.flatMap((stored) =>
      stored.event.type === 'unreadable'
        ? []
        : [
            `  ${absolute(timeOf(stored), nowMs)}  ${authorText(stored.event)}: ${sentence(stored.event, () => serverName)}\n`,
          ],
    ),
    next === null ? '' : `  ${paint(terminal, 'yellow', next)}\n`,
  ].join('');
}

/** A released move that has not ended is assumed to be done, and must not be told as a fact. */
export const assumedText = ({ host, tasks }: Assumed): string =>
  `assumed on ${host} by ${tasks
    .map(
      ({ taskId, startedAt }) =>
        `task ${taskId}, ${startedAt === null ? 'not started yet' : `started at ${startedAt}`}`,
    )
    .join(' and ')}`;
