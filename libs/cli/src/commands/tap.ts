import { ALL, type Family, families, type Message, messagesByFamily } from '@kronos/contracts';
import type { Delivered } from '@kronos/eventlog';
import { UsageError } from '../errors.ts';
import { DEFAULT_FAMILIES } from '../families.ts';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { serverNames } from '../names.ts';
import { withSession } from '../open.ts';
import { formatOf, isStructured, textShell } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { messageLine, whole } from '../tap/line.ts';
import { orderedByTime } from '../tap/order.ts';
import { parseTime, when } from '../times.ts';

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
  checkTypes(chosen, options.type ?? []);
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
      else on.terminal.out(`${messageLine(on, names, delivered)}\n`);
    };
    let written = 0;
    for await (const delivered of orderedByTime(messages, stop)) {
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

function familyOfText(text: string): Family {
  const name = text.replace(/^kronos\./, '').replace(/\..*$/, '');
  const found = families.find((family) => family === name || family === `${name}s`);
  if (found !== undefined) return found;
  throw new UsageError(`no message family is named ${JSON.stringify(text)}`, `There are: ${families.join(', ')}.`);
}

/** @throws UsageError for a text that no type of these messages contains: nothing would ever match it */
function checkTypes(chosen: readonly Family[], parts: readonly string[]): void {
  const types = chosen.flatMap((family) => messagesByFamily[family].map(({ shape }) => shape.type.value));
  const unknown = parts.find((part) => !types.some((type) => type.includes(part)));
  if (unknown === undefined) return;
  throw new UsageError(
    `--type ${unknown}: no message of ${chosen.join(', ')} has such a type`,
    `There are: ${[...new Set(types)].join(', ')}.`,
  );
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
