/** The part of a host in a decision, for people. Pure. */
import { clause, count } from '@kronos/contracts';
import { type ByPolicy, type HostExplanation, meaningOf } from '@kronos/placement';
import type { Explained, HostFailure } from '@kronos/replay';
import { figure } from '../numbers.ts';
import { type Cell, table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { when } from '../times.ts';
import { policyValues } from './cycle.ts';
import { assumedText, damagedLines } from './vm.ts';

/** The moves of the last day that failed because of the host. */
export function failureLines({ snapshot }: Explained, failures: readonly HostFailure[], nowMs: number): string {
  const names = new Map(snapshot?.servers.map((server) => [server.id, server.name]));
  return failures
    .map(({ atMs, data: { serverId, from, taskId, errorType, reason } }) => {
      const move = `the move of ${names.get(serverId) ?? serverId} from ${from}`;
      return `it failed ${move}, ${when(atMs, nowMs)} (${taskId}): ${errorType}: ${reason.text}\n`;
    })
    .join('');
}

/** The VMs of a host, the heaviest first, with why they do not move. */
const vmTable = (
  terminal: Terminal,
  vms: NonNullable<ReturnType<NonNullable<Explained['explanation']>['host']>>['vms'],
  names: ReadonlyMap<string, string>,
): string =>
  table(
    terminal,
    [
      { head: 'vm', flex: true },
      { head: 'weight', flex: true },
      { head: '', flex: true },
    ],
    vms.map((vm): Cell[] => [
      names.get(vm.serverId) ?? vm.serverId,
      policyValues(vm.weights),
      vm.assumed !== null
        ? { text: `on ${vm.assumed.observed}, ${assumedText(vm.assumed)}`, style: 'dim' }
        : vm.refusal === null
          ? ''
          : { text: meaningOf(vm.refusal), style: 'dim' },
    ]),
  );

const rankText = (rank: Readonly<Record<string, number>> | null, hosts: number): string =>
  rank === null
    ? ''
    : `; place among ${hosts} hosts: ${Object.entries(rank)
        .map(([policy, place]) => `${policy} ${place}`)
        .join(', ')}`;

function destinationText(refusal: HostExplanation['refusal']): string {
  if (refusal === null) return 'it may be a destination\n';
  const { reason } = refusal.detail;
  return `it may not be a destination: ${clause(meaningOf(refusal.code))}${reason === undefined ? '' : ` (${reason})`}\n`;
}

export function hostText(terminal: Terminal, explained: Explained, name: string): string {
  const { explanation, decision, snapshot } = explained;
  const damaged = damagedLines(terminal, explained, ({ from, destination }) => from === name || destination === name);
  const steps = decision.plan?.steps ?? [];
  const host = explanation?.host(name) ?? null;
  const moves = steps
    .filter((step) => step.from === name || step.to === name)
    .map(
      (step) =>
        `step ${step.step}: ${step.serverName} ${step.to === name ? `arrives from ${step.from}` : `leaves for ${step.to}`}\n`,
    )
    .join('');
  if (host === null) return `${damaged}${moves === '' ? 'The decision does not mention it.\n' : moves}`;
  const names = new Map(snapshot?.servers.map((server) => [server.id, server.name]));
  const heaviest = host.vms.toSorted((a, b) => sum(b.weights) - sum(a.weights));
  return [
    destinationText(host.refusal),
    `${policyValues(host.before)}${moves === '' ? '' : `; with the plan ${policyValues(host.after)}`}${rankText(host.rank, snapshot?.hosts.length ?? 0)}\n`,
    `free: ${Object.entries(host.free)
      .map(([resource, amount]) => `${resource} ${figure(amount, 1)}`)
      .join(', ')}\n`,
    host.evacuation === null ? '' : `evacuation: ${host.evacuation.state}, ${count(host.evacuation.left, 'VM')} left\n`,
    damaged,
    host.drainRefusal === null ? '' : `not drained: ${clause(meaningOf(host.drainRefusal))}\n`,
    moves,
    ...host.assumedGone.map((gone) => `${names.get(gone.serverId) ?? gone.serverId} is here, ${assumedText(gone)}\n`),
    '\n',
    heaviest.length === 0
      ? 'It holds no VM, assuming that all released moves are done.\n'
      : vmTable(terminal, heaviest, names),
  ].join('');
}

const sum = (weights: ByPolicy): number => Object.values(weights).reduce((total, value) => total + value, 0);
