import { setTimeout as delay } from 'node:timers/promises';
import {
  ALL,
  eventTimeMs,
  type Family,
  families,
  iso,
  type Message,
  moveEnd,
  parseSubject,
  sentence,
} from '@kronos/contracts';
import type { Delivered } from '@kronos/eventlog';
import { UsageError } from '../errors.ts';
import { DEFAULT_FAMILIES } from '../families.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { authorText, serverNames, serverText } from '../names.ts';
import { withSession } from '../open.ts';
import { formatOf, isStructured, textShell } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { cutToWidth, paint, type Style } from '../terminal.ts';
import { absolute, parseTime, said, when } from '../times.ts';

export type TapOptions = ConfigOption &
  OutputOption &
  AggregateOption & {
    readonly type?: string[];
    readonly vm?: string;
    readonly since?: string;
    readonly end?: boolean;
  };

/** kronos tap. */
export async function tap(shell: Shell, wanted: readonly string[], options: TapOptions): Promise<void> {
  const chosen = wanted.length === 0 ? DEFAULT_FAMILIES : wanted.map(familyOfText);
  const since =
    options.since === undefined
      ? 'new'
      : options.since === 'all'
        ? 'all'
        : new Date(parseTime('--since', options.since, shell.now()));
  const stop = options.end === true ? null : shell.interrupted();
  await withSession(shell, options, async ({ log, scope }) => {
    const aggregates =
      options.aggregate === undefined ? {} : { aggregates: filterAggregates(scope, options.aggregate) };
    const messages = log.tail({ families: chosen, ...aggregates, since, end: options.end === true });
    const names = new Map<string, string>();
    const read = new Set<string>();
    /** Reads the newest snapshot of an aggregate, once, when an event names a VM that no plan named. */
    const learn = async ({ message, problem }: Delivered<Message>): Promise<void> => {
      if (problem !== undefined || !('serverId' in message.data) || names.has(message.data.serverId)) return;
      const of = scope.filter((name) => [name, ALL].includes(message.aggregate) && !read.has(name));
      for (const name of of) read.add(name);
      for (const [id, name] of await serverNames(log, of)) names.set(id, name);
    };
    const yaml = formatOf(options) === 'yaml' ? (await import('yaml')).stringify : null;
    const on = textShell(shell, options);
    const write = (delivered: Delivered<Message>): void => {
      if (yaml !== null) shell.terminal.out(`---\n${yaml(whole(delivered))}`);
      else if (isStructured(options)) shell.terminal.out(`${JSON.stringify(whole(delivered))}\n`);
      else on.terminal.out(`${render(on, names, delivered)}\n`);
    };
    let written = 0;
    for await (const delivered of inOrder(messages, stop)) {
      learnNames(names, delivered);
      await learn(delivered);
      if (!matches(options, names, delivered)) continue;
      write(delivered);
      written++;
    }
    if (written === 0 && options.end === true && !isStructured(options))
      shell.terminal.out(`${nothing(chosen, options, since, shell.now())}\n`);
  });
}

/** Says that there is no message, and since when. */
function nothing(
  chosen: readonly Family[],
  { type, vm }: TapOptions,
  since: 'new' | 'all' | Date,
  nowMs: number,
): string {
  const what = chosen.every((family) => family === 'alarms') ? 'alarm' : 'message';
  const wanted = type === undefined && vm === undefined ? '' : ' that matches';
  if (since === 'new') return `No ${what}${wanted}: --end ends at once without --since.`;
  return `No ${what}${wanted} ${since === 'all' ? 'is stored' : `since ${when(since.getTime(), nowMs)}`}.`;
}

/** Messages of the streams side by side are put in order of time as long as they come in one go. */
const QUIET_MS = 100;
const HELD = 10_000;

async function* inOrder(
  messages: AsyncIterable<Delivered<Message>>,
  stop: AbortSignal | null,
): AsyncGenerator<Delivered<Message>, void, undefined> {
  const source = messages[Symbol.asyncIterator]();
  const stopped = new Promise<'stopped'>((resolve) =>
    stop?.addEventListener('abort', () => resolve('stopped'), { once: true }),
  );
  let held: Delivered<Message>[] = [];
  let next = source.next();
  for (;;) {
    const quiet = new AbortController();
    const came = await Promise.race([
      next,
      stopped,
      ...(held.length === 0 ? [] : [delay(QUIET_MS, 'quiet' as const, { signal: quiet.signal })]),
    ]).finally(() => quiet.abort());
    const over = came === 'stopped' || (came !== 'quiet' && came.done === true);
    if (came !== 'quiet' && came !== 'stopped' && came.done !== true) {
      held.push(came.value);
      next = source.next();
    }
    if (!over && came !== 'quiet' && held.length < HELD) continue;
    held.sort((a, b) => a.storedAt - b.storedAt);
    const ready = over || came === 'quiet' ? held.length : HELD / 2;
    yield* held.slice(0, ready);
    held = held.slice(ready);
    if (over) return;
  }
}

function familyOfText(text: string): Family {
  const name = text.replace(/^kronos\./, '').replace(/\..*$/, '');
  const found = families.find((family) => family === name || family === `${name}s`);
  if (found !== undefined) return found;
  throw new UsageError(`no message family is named ${JSON.stringify(text)}`, `There are: ${families.join(', ')}.`);
}

/** Plans and tasks name the servers that results only have the uuids of. */
function learnNames(names: Map<string, string>, { message, problem }: Delivered<Message>): void {
  if (problem !== undefined) return;
  if (message.type === 'migration.requested') names.set(message.data.serverId, message.data.serverName);
  if (message.type === 'cycle.decided')
    for (const { serverId, serverName } of message.data.plan?.steps ?? []) names.set(serverId, serverName);
}

function matches({ type, vm }: TapOptions, names: ReadonlyMap<string, string>, delivered: Delivered<Message>): boolean {
  const { message, problem } = delivered;
  if (problem !== undefined) return type === undefined && vm === undefined;
  if (type !== undefined && !type.some((part) => message.type.includes(part))) return false;
  if (vm === undefined) return true;
  const about = (id: string): boolean => id.includes(vm) || (names.get(id)?.includes(vm) ?? false);
  const { data } = message;
  if ('serverId' in data) return about(data.serverId);
  if (message.type === 'cycle.decided')
    return [...(message.data.plan?.steps ?? []), ...message.data.stuck].some((entry) => about(entry.serverId));
  if ('taskId' in data) return data.taskId.includes(vm);
  return false;
}

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
function whole({ message, problem, subject, sequence, storedAt }: Delivered<Message>): object {
  const at = { subject, sequence, storedAt: iso(storedAt) };
  return problem === undefined ? { ...at, ...message } : { ...at, problem, body: message };
}

function render({ terminal, now }: Shell, names: ReadonlyMap<string, string>, delivered: Delivered<Message>): string {
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
