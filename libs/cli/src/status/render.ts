import { clause, count, decisionWords, iso } from '@kronos/contracts';
import { type AggregateStatus, type Alarm, COOLING_DOWN, courseText, ratioText, type Status } from '@kronos/status';
import { byteText, figure } from '../numbers.ts';
import { MOVE_COLUMNS, table } from '../table.ts';
import { cutToWidth, paint, type Style, type Terminal } from '../terminal.ts';
import { relative, said, span, when } from '../times.ts';

/** The event log that the status is read from. */
export type StatusOrigin = {
  /** The aggregates that were asked for; null: all in scope. */
  readonly only: readonly string[] | null;
  readonly server: string | null;
  readonly servers: readonly string[];
};

const MOVES_SHOWN = 10;
const ALARMS_SHOWN = 12;
const LABEL = 14;
/** With more aggregates than these, each one with nothing to tell gets one line: the output stays on one screen. */
const MANY = 3;

/** The status as one screen. */
export function renderStatus(terminal: Terminal, status: Status, place: StatusOrigin): string {
  const { timeMs } = status;
  const toDo = status.alarms.filter(({ severity }) => severity === 'alarm');
  const toKnow = status.alarms.filter(({ severity }) => severity === 'info');
  const verdict = status.well
    ? paint(terminal, 'green', 'all is well')
    : paint(terminal, 'red', `${count(toDo.length, 'problem')}`);
  const log = status.streams[0];
  const lines = [
    `${paint(terminal, 'bold', 'Kronos')}${place.only === null ? '' : `, only ${place.only.join(', ')}`}: ${verdict}   ${iso(timeMs).slice(0, 19)}Z`,
    ...(log === undefined
      ? []
      : [
          `event log: ${count(log.messages, 'event')}, ${byteText(log.bytes)}${log.maxBytes > 0 ? ` of ${byteText(log.maxBytes)}` : ''}   nats-server ${place.server ?? '(unknown)'} at ${place.servers.join(', ')}`,
        ]),
    '',
    ...toDo.slice(0, ALARMS_SHOWN).flatMap((alarm) => alarmLines(terminal, alarm)),
    ...(toDo.length > ALARMS_SHOWN ? [`  ${toDo.length - ALARMS_SHOWN} more: kronos status --json`] : []),
    ...toKnow.slice(0, ALARMS_SHOWN).map(({ about, text }) => `${paint(terminal, 'dim', 'i')} ${about}: ${text}`),
    ...(status.alarms.length > 0 ? [''] : []),
    ...status.aggregates.flatMap((aggregate) =>
      status.aggregates.length > MANY && isQuiet(status, aggregate)
        ? []
        : [...aggregateLines(terminal, status, aggregate, timeMs), ''],
    ),
    ...(status.aggregates.length > MANY
      ? quietLines(
          terminal,
          status.aggregates.filter((aggregate) => isQuiet(status, aggregate)),
          timeMs,
        )
      : []),
    servicesLine(terminal, status),
  ];
  return `${lines.map((line) => (terminal.live && !line.includes('\u001b') ? cutToWidth(line, terminal.columns) : line)).join('\n')}\n`;
}

/** Nothing is wrong, nothing moves, and nothing is waited for but the end of a cooldown. */
const isQuiet = (status: Status, aggregate: AggregateStatus): boolean => {
  const { moves, waitsFor, brokenHosts, doing } = aggregate;
  return (
    !isAlarmed(status, aggregate) &&
    moves.length === 0 &&
    brokenHosts.length === 0 &&
    (waitsFor === null || doing.startsWith(COOLING_DOWN))
  );
};

const isAlarmed = ({ alarms }: Status, { aggregate }: AggregateStatus): boolean =>
  alarms.some(({ severity, places }) => severity === 'alarm' && places.some((place) => place.aggregate === aggregate));

/** The alarm, what it explains and what to do. */
export function alarmLines(terminal: Terminal, { about, text, remedy, runbook, explains }: Alarm): string[] {
  const also = explains.length === 0 ? '' : ` (explains ${explains.length} more)`;
  return [
    `${paint(terminal, 'red', '!')} ${about}: ${text}${also}`,
    `  ${paint(terminal, 'dim', `${remedy} See ${runbook}.`)}`,
  ];
}

function quietLines(terminal: Terminal, quiet: readonly AggregateStatus[], nowMs: number): string[] {
  if (quiet.length === 0) return [];
  const rows = quiet.map(({ aggregate, doing, waitsFor, lastLook, ratio }) => [
    { text: aggregate, style: 'bold' as const },
    waitsFor === null ? doing : `${doing} until ${waitsFor}`,
    ratioText(ratio),
    lastLook === null ? '' : relative(lastLook.timeMs, nowMs),
  ]);
  const columns = [
    { head: 'quiet', flex: true },
    { head: 'doing', flex: true },
    { head: 'ratio', right: true },
    { head: 'last look', right: true },
  ];
  return [...table(terminal, columns, rows).trimEnd().split('\n'), ''];
}

function aggregateLines(terminal: Terminal, all: Status, status: AggregateStatus, nowMs: number): string[] {
  const row = (label: string, text: string): string => `  ${paint(terminal, 'dim', label.padEnd(LABEL))}${text}`;
  const { lastLook, lastDecision, policies, moves, ratio } = status;
  const lines = [
    `${paint(terminal, 'bold', status.aggregate)}   ${paint(terminal, doingStyle(all, status), said(status.doing, nowMs))}`,
  ];
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
      row(
        'last decision',
        `${when(lastDecision.atMs, nowMs)}: ${decisionWords[lastDecision.outcome]}, ${said(clause(lastDecision.text), nowMs)}`,
      ),
    );
  if (policies.length > 0)
    lines.push(
      row(
        'imbalance',
        `${ratio === null ? '' : `${ratioText(ratio)} of its threshold: `}${policies.map(policyText).join(', ')}${lastDecision?.combined === null || lastDecision === null ? '' : `; combined ${figure(lastDecision.combined)}`}`,
      ),
    );
  lines.push(...furtherRows(status, nowMs).map(([label, text]) => row(label, text)));
  if (moves.length > 0) {
    const narrow = { ...terminal, columns: terminal.columns - 2 };
    const shown = table(
      narrow,
      [{ head: 'task' }, ...MOVE_COLUMNS, { head: 'state' }, { head: '', flex: true }],
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

/** The rows below the policies: the rest of the course, tasks that wait, and VMs and hosts that are excluded. */
function furtherRows(
  { course, drains, waits, quarantined, brokenHosts }: AggregateStatus,
  nowMs: number,
): (readonly [label: string, text: string])[] {
  return [
    ...(course === null ? [] : [['course', courseText(course)] as const]),
    ...drains.map(
      ({ host, text, by, sinceMs }) =>
        ['drain', `${host}: ${text} (requested by ${by} at ${when(sinceMs, nowMs)})`] as const,
    ),
    ...waits.map(
      ({ about, text, sinceMs }) =>
        ['waits', `${about.kind} ${about.id}: for ${text}, since ${when(sinceMs, nowMs)}`] as const,
    ),
    ...(quarantined > 0 ? [['quarantine', `${count(quarantined, 'VM')}: kronos quarantine list`] as const] : []),
    ...(brokenHosts.length > 0 ? [['broken hosts', brokenHosts.map(({ host }) => host).join(', ')] as const] : []),
  ];
}

function doingStyle(all: Status, aggregate: AggregateStatus): Style {
  const { moves, doing } = aggregate;
  if (isAlarmed(all, aggregate)) return 'yellow';
  if (moves.length > 0) return 'cyan';
  return doing.startsWith('watching') ? 'green' : 'yellow';
}

function servicesLine(terminal: Terminal, { services }: Status): string {
  if (services === null) return 'services: unknown';
  if (services.length === 0) return 'services: none sent a heartbeat in the last 10 minutes';
  const text = services.map(({ service, instance, state, ready, checkpoint }) => {
    const word = ready ? 'ready' : state === 'running' ? 'not ready' : state;
    const verified = checkpoint === null || state === 'stopped' ? '' : ` (${verifiedText(checkpoint)})`;
    return `${service} ${instance} ${paint(terminal, ready ? 'green' : state === 'stopped' ? 'dim' : 'red', word)}${verified}`;
  });
  return `services: ${text.join(', ')}`;
}

/** How far the log confirms the checkpoint that a service started from. */
const verifiedText = ({ sequence, verifiedTo }: { readonly sequence: number; readonly verifiedTo: number }): string =>
  verifiedTo < sequence
    ? `verifying its checkpoint: ${verifiedTo} of ${count(sequence, 'event')}`
    : `verified to sequence ${sequence}`;

/** `cpu 0.31 > 0.2`, `memory 0.1 <= 0.25`, `disk skipped`. */
const policyText = ({ policy, imbalance, threshold, acts }: AggregateStatus['policies'][number]): string =>
  imbalance === null
    ? `${policy} skipped`
    : `${policy} ${figure(imbalance)} ${imbalance > threshold ? '>' : '<='} ${figure(threshold)}${acts === false ? ' (does not act: no contention)' : ''}`;
