/** The preview of a drain, and the commands that a person needs after it. Pure. */
import { clause, count, some, timeMs } from '@kronos/contracts';
import type { HostDrain } from '@kronos/cycle';
import { remedyOfReason } from '@kronos/facts';
import { progressOf, type RunHost } from '@kronos/operator';
import { aggregateState, type LogState } from '@kronos/projections';
import { gibText } from '../numbers.ts';
import { quoted } from '../quoted.ts';
import { paint, type Terminal } from '../terminal.ts';
import { estimated, expected, said, when } from '../times.ts';

/** A host as a drain would empty it, and the drain that was requested already. */
export type Preview = HostDrain & {
  readonly requested?: { readonly aggregate: string; readonly by: string; readonly atMs: number };
};

/** Says after a preview that it requested nothing, and that drains that were requested before go on. */
export function notRequested(previews: readonly Preview[]): string {
  const running = previews.flatMap(({ host, requested }) => (requested === undefined ? [] : [host]));
  if (running.length === 0) return 'No drain was requested.';
  const goesOn = `${count(running.length, 'drain')} requested before ${running.length === 1 ? 'goes' : 'go'} on: ${some(running, 3)}`;
  return `No further drain was requested. ${goesOn} (kronos status).`;
}

/** The remedies for VMs that cannot leave, by the reason. */
export function howToFree(
  hosts: readonly RunHost[],
  state: LogState,
  stuck: readonly string[],
  { rolling }: { readonly rolling: boolean },
): string {
  const reasons = hosts
    .filter(({ host }) => stuck.includes(host))
    .flatMap(({ host, aggregate }) => aggregateState(state, aggregate).drains.get(host)?.progress?.stuck ?? []);
  const lines = [...Map.groupBy(reasons, ({ reason }) => reason.code)].map(
    ([code, alike]) => `${some(alike.map(({ serverName }) => serverName))}: ${remedyOfReason(code)}`,
  );
  const giveUp = rolling ? '' : ` To give up: kronos undrain ${stuck.join(' ')}`;
  return [...lines, `The drain continues once these VMs can leave.${giveUp}`]
    .map((line) => `kronos: ${line}\n`)
    .join('');
}

/** The commands after a run that stopped: to drain the hosts that are left, and to end the drains that it leaves open. */
export function howToContinue(
  hosts: readonly RunHost[],
  state: LogState,
  rolling: Rolling,
  { reason, comment }: { readonly reason?: string; readonly comment?: string },
): string {
  const why = reason ?? comment;
  const at = (host: RunHost) => progressOf(host, aggregateState(state, host.aggregate));
  const left = hosts.filter((host) => {
    const { at: where } = at(host);
    return !(where === 'over' && host.hooked);
  });
  const kept = left.filter((host) => !['todo', 'over'].includes(at(host).at));
  const wasDisabled = ({ host, aggregate }: RunHost) =>
    aggregateState(state, aggregate).drains.get(host)?.disabled?.byKronos === false;
  const own = kept.filter((host) => !wasDisabled(host)).map(({ host }) => host);
  const others = kept.filter(wasDisabled).map(({ host }) => host);
  const lines = [
    ...(own.length === 0 ? [] : [`${own.join(', ')}: not enabled. To enable: kronos undrain ${own.join(' ')}`]),
    ...(others.length === 0
      ? []
      : [
          `${others.join(', ')}: disabled before the drain, and not by Kronos. To end the drain and leave it disabled: kronos undrain ${others.join(' ')}`,
        ]),
    ...(left.length === 0
      ? []
      : [
          `To continue: kronos drain ${left.map(({ host }) => host).join(' ')} --one-by-one --hook ${quoted(rolling.hook)} --hook-timeout ${rolling.hookTimeout}${why === undefined ? '' : ` --reason ${quoted(why)}`} --yes`,
        ]),
  ];
  return lines.map((line) => `kronos: ${line}\n`).join('');
}

/** Names the hosts that cannot be emptied, below the previews of several hosts. */
export function previewSummary(terminal: Terminal, previews: readonly Preview[]): readonly string[] {
  if (previews.length < 2) return [];
  const hosts = count(previews.length, 'host');
  const stuck = previews.filter((one) => one.stuck.length > 0);
  if (stuck.length === 0) return [`Every VM of the ${hosts} can leave.\n`];
  const named = stuck.map((one) => `${one.host} (${count(one.stuck.length, 'VM')})`).join(', ');
  return [`${paint(terminal, 'red', `${stuck.length} of ${hosts} cannot be emptied: ${named}.`)}\n`];
}

/** The preview of one host, for people. */
export function previewText(terminal: Terminal, one: Preview, nowMs: number): string {
  const { host, aggregate, snapshotTime, disabled, moves, time, waiting, stuck, blockedBy, holds, requested } = one;
  const lines = [
    `${paint(terminal, 'bold', host)} (${aggregate}), as seen at ${when(timeMs(snapshotTime), nowMs)}: ${count(moves.length + waiting.length + stuck.length, 'VM')}`,
    ...(requested === undefined
      ? []
      : [
          paint(
            terminal,
            'yellow',
            `  It is being drained already${requested.aggregate === aggregate ? '' : ` in ${requested.aggregate}`}, requested by ${requested.by} at ${when(requested.atMs, nowMs)}.`,
          ),
        ]),
    ...(disabled === null
      ? []
      : [
          paint(
            terminal,
            'yellow',
            `  It is disabled already (${disabled.reason ?? 'no reason given'}): undrain will not enable it.`,
          ),
        ]),
    ...moves.map(
      ({ serverName, serverId, to, ramMb, duration }) =>
        `  ${serverName} (${serverId}, ${gibText(ramMb / 1024)}) -> ${to}, ${expected(duration)}`,
    ),
    ...waiting.map(({ serverName, serverId, reason }) =>
      paint(terminal, 'yellow', `  ${serverName} (${serverId}) moves later: ${clause(reason.text)}`),
    ),
    ...stuck.map(({ serverName, serverId, reason }) =>
      paint(terminal, 'red', `  ${serverName} (${serverId}) cannot leave: ${clause(reason.text)}`),
    ),
    ...(moves.length === 0
      ? []
      : [
          time === null
            ? '  Time: unknown, because no policy allows a move (max_migrations_per_cycle).'
            : `  Time with ${count(time.plans, 'plan')}: ${estimated(time)}${time.interval === null ? '' : '; 90 % of former moves were within such intervals'}.`,
        ]),
    ...holds.map((text) => paint(terminal, 'yellow', `  ${said(text, nowMs)}.`)),
    ...(blockedBy === null ? [] : [paint(terminal, 'red', `  Blocked by: ${blockedBy}.`)]),
  ];
  return `${lines.join('\n')}\n`;
}

/** A run that drains one host at a time and runs a command on each. */
export type Rolling = { readonly hook: string; readonly hookTimeout: string; readonly hookTimeoutMs: number };
