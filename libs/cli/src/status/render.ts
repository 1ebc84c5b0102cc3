import type { Terminal } from '../terminal.ts';
import { count, cut, figure, paint, type Style, table } from '../terminal.ts';
import { relative, span, when } from '../times.ts';
import { type AggregateStatus, COOLING_DOWN, policyText, type Status } from './status.ts';

const MOVES_SHOWN = 10;
const ALARMS_SHOWN = 12;
const LABEL = 14;
/** Of more aggregates than these, those with nothing to tell get one line each: all of it stays on one screen. */
const MANY = 3;

/** The status as one screen. */
export function renderStatus(terminal: Terminal, status: Status): string {
  const { timeMs } = status;
  const verdict = status.well
    ? paint(terminal, 'green', 'all is well')
    : paint(terminal, 'red', `${count(status.alarms.length, 'thing')} to look at`);
  const log = status.streams[0];
  const lines = [
    `${paint(terminal, 'bold', 'Kronos')}: ${verdict}   ${new Date(timeMs).toISOString().slice(0, 19)}Z`,
    ...(log === undefined
      ? []
      : [
          `event log: ${count(log.messages, 'event')}, ${bytes(log.bytes)}${log.maxBytes > 0 ? ` of ${bytes(log.maxBytes)}` : ''}   nats-server ${status.server} at ${status.servers.join(', ')}`,
        ]),
    '',
    ...status.alarms
      .slice(0, ALARMS_SHOWN)
      .map(({ about, text }) => `${paint(terminal, 'red', '!')} ${about}: ${text}`),
    ...(status.alarms.length > ALARMS_SHOWN
      ? [`  ${status.alarms.length - ALARMS_SHOWN} more: kronos status --json`]
      : []),
    ...(status.alarms.length > 0 ? [''] : []),
    ...status.aggregates.flatMap((aggregate) =>
      status.aggregates.length > MANY && isQuiet(aggregate) ? [] : [...aggregateLines(terminal, aggregate, timeMs), ''],
    ),
    ...(status.aggregates.length > MANY ? quietLines(terminal, status.aggregates.filter(isQuiet), timeMs) : []),
    servicesLine(terminal, status),
  ];
  return `${lines.map((line) => (terminal.live && !line.includes('\u001b') ? cut(line, terminal.columns) : line)).join('\n')}\n`;
}

/** Nothing is wrong, nothing moves, and nothing is waited for but the end of a cooldown. */
const isQuiet = ({ alarms, moves, waitsFor, brokenHosts, doing }: AggregateStatus): boolean =>
  alarms.length === 0 &&
  moves.length === 0 &&
  brokenHosts.length === 0 &&
  (waitsFor === null || doing.startsWith(COOLING_DOWN));

function quietLines(terminal: Terminal, quiet: readonly AggregateStatus[], nowMs: number): string[] {
  if (quiet.length === 0) return [];
  const rows = quiet.map(({ aggregate, doing, waitsFor, lastLook, lastDecision }) => [
    { text: aggregate, style: 'bold' as const },
    waitsFor === null ? doing : `${doing} until ${waitsFor}`,
    lastDecision?.combined === null || lastDecision === null ? '' : figure(lastDecision.combined),
    lastLook === null ? '' : relative(lastLook.timeMs, nowMs),
  ]);
  const columns = [
    { head: 'quiet', flex: true },
    { head: 'doing', flex: true },
    { head: 'imbalance', right: true },
    { head: 'last look', right: true },
  ];
  return [...table(terminal, columns, rows).trimEnd().split('\n'), ''];
}

function aggregateLines(terminal: Terminal, status: AggregateStatus, nowMs: number): string[] {
  const row = (label: string, text: string): string => `  ${paint(terminal, 'dim', label.padEnd(LABEL))}${text}`;
  const { lastLook, lastDecision, policies, moves, brokenHosts } = status;
  const lines = [`${paint(terminal, 'bold', status.aggregate)}   ${paint(terminal, doingStyle(status), status.doing)}`];
  if (status.waitsFor !== null) lines.push(row('waits for', status.waitsFor));
  lines.push(
    row(
      'last look',
      lastLook === null
        ? 'never'
        : `${when(lastLook.timeMs, nowMs)}: ${count(lastLook.hosts, 'host')}, ${count(lastLook.servers, 'VM')}`,
    ),
  );
  if (lastDecision !== null)
    lines.push(
      row('last decision', `${when(lastDecision.atMs, nowMs)}: ${lastDecision.outcome}, ${lastDecision.text}`),
    );
  if (policies.length > 0)
    lines.push(
      row(
        'imbalance',
        `${policies.map(policyText).join(', ')}${lastDecision?.combined === null || lastDecision === null ? '' : `; combined ${figure(lastDecision.combined)}`}`,
      ),
    );
  if (status.quarantined > 0)
    lines.push(row('quarantine', `${count(status.quarantined, 'VM')}: kronos quarantine list`));
  if (brokenHosts.length > 0) lines.push(row('broken hosts', brokenHosts.map(({ host }) => host).join(', ')));
  if (moves.length > 0) {
    const narrow = { ...terminal, columns: terminal.columns - 2 };
    const shown = table(
      narrow,
      [
        { head: 'task' },
        { head: 'vm', flex: true },
        { head: 'from', flex: true },
        { head: 'to', flex: true },
        { head: 'state' },
        { head: '', flex: true },
      ],
      moves.slice(0, MOVES_SHOWN).map((move) => [
        move.taskId,
        move.vm,
        move.from,
        move.to,
        {
          text: move.state === 'migrating' ? `migrating for ${span(nowMs - move.sinceMs)}` : move.state,
          style: move.state === 'migrating' ? 'cyan' : 'dim',
        },
        move.note,
      ]),
    );
    lines.push(
      ...shown
        .trimEnd()
        .split('\n')
        .map((line) => `  ${line}`),
    );
    if (moves.length > MOVES_SHOWN) lines.push(`  ${moves.length - MOVES_SHOWN} more`);
  }
  return lines;
}

function doingStyle({ alarms, moves, doing }: AggregateStatus): Style {
  if (alarms.length > 0) return 'yellow';
  if (moves.length > 0) return 'cyan';
  return doing.startsWith('watching') ? 'green' : 'yellow';
}

function servicesLine(terminal: Terminal, { services }: Status): string {
  const words = { ready: 'ready', notReady: 'not ready', unreachable: 'not reachable from here' } as const;
  const styles = { ready: 'green', notReady: 'red', unreachable: 'dim' } as const;
  if (services.length === 0) return 'services: none has a fixed port in [http]';
  if (services.every(({ state }) => state === 'unreachable'))
    return 'services: none is reachable from here, which says nothing about those that run elsewhere';
  return `services: ${services.map(({ service, state }) => `${service} ${paint(terminal, styles[state], words[state])}`).join(', ')}`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

function bytes(n: number): string {
  let value = n;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}
