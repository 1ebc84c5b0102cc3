import type { Service } from './messages/define.ts';
import { definitions } from './messages/list.ts';
import type { LogEventType, Message, MessageType } from './messages.ts';
import { type Family, logFamilies } from './names.ts';

export type { Service } from './messages/define.ts';

type Author = {
  readonly writers: readonly Service[];
  readonly misuse?: (message: Message) => string | null;
};

const all = Object.values(definitions).flat();

/**
 * Which services may write each type. Together with the family of the type (`messagesByFamily`) this is the one table of
 * authority: appending, reading, the permissions of NATS users and the tests use it.
 */
export const authors = Object.fromEntries(all.map(({ type, writers }) => [type, writers])) as Readonly<
  Record<MessageType, readonly Service[]>
>;

const byType = new Map<string, Author>(all.map((one) => [one.type, one as unknown as Author]));

/** Every type of event that the log may hold. */
export const logEventTypes: readonly LogEventType[] = (Object.keys(definitions) as Family[])
  .filter((family) => (logFamilies as readonly Family[]).includes(family))
  .flatMap((family) => definitions[family].map(({ type }) => type as LogEventType));

/** Why the author may not write the message; null when it may. */
export function wrongAuthor(message: Message): string | null {
  const { service } = message.by;
  const author = byType.get(message.type);
  const allowed = author?.writers ?? [];
  if (!allowed.includes(service))
    return `${message.type} is written by the ${allowed.join(' or the ')}, and this one names the ${service} as its author`;
  return author?.misuse?.(message) ?? null;
}
