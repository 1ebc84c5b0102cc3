/** A message of the log as one line, and for a program. Pure. */
import { eventTimeMs, iso, type Message, moveEnd, parseSubject, sentence } from '@kronos/contracts';
import type { Delivered } from '@kronos/eventlog';
import { authorText, serverText } from '../names.ts';
import type { Shell } from '../shell.ts';
import { cutToWidth, paint, type Style } from '../terminal.ts';
import { absolute, said } from '../times.ts';

const styles: Readonly<Record<string, Style>> = {
  'migration.failed': 'red',
  'migration.abortRefused': 'red',
  'migration.completed': 'green',
  'migration.started': 'cyan',
  'snapshot.taken': 'dim',
};

/** The style of a move that ended and was no plain success; null for all others. */
function endStyle(message: Message): Style | null {
  if (message.type !== 'migration.completed' && message.type !== 'migration.failed') return null;
  return ({ plain: null, warned: 'yellow', damaged: 'red' } as const)[moveEnd(message)];
}

/** A message for a program. */
export function whole({ message, problem, subject, sequence, storedAt }: Delivered<Message>): object {
  const at = { subject, sequence, storedAt: iso(storedAt) };
  return problem === undefined ? { ...at, ...message } : { ...at, problem, body: message };
}

export function messageLine(
  { terminal, now }: Shell,
  names: ReadonlyMap<string, string>,
  delivered: Delivered<Message>,
): string {
  const { message, problem, subject, firstStoredAt } = delivered;
  const place = parseSubject(subject)?.name ?? subject;
  const stamp = absolute(problem === undefined ? eventTimeMs(message.time, firstStoredAt) : firstStoredAt, now());
  if (problem !== undefined) return `${stamp}  ${place}  ${paint(terminal, 'red', `cannot be read: ${problem}`)}`;
  const by = authorText(message);
  const head = `${stamp}  ${place}  ${by}: `;
  const text = said(
    sentence(message, (id) => serverText(names, id)),
    now(),
  );
  const room = terminal.live ? Math.max(20, terminal.columns - head.length) : Number.POSITIVE_INFINITY;
  const style = endStyle(message) ?? styles[message.type] ?? (message.by.service === 'operator' ? 'magenta' : null);
  const shown = cutToWidth(text, room);
  const steps =
    message.type === 'cycle.decided'
      ? (message.data.plan?.steps ?? []).map(
          (s) => `\n  ${s.step}. ${s.serverName}  ${s.from} -> ${s.to}  (${s.phase})`,
        )
      : [];
  return `${head}${style === null ? shown : paint(terminal, style, shown)}${steps.join('')}`;
}
