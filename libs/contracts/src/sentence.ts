import type { NameOf } from './messages/define.ts';
import { definitions } from './messages/list.ts';
import type { Message } from './messages.ts';

type Sentence = (message: Message, nameOf: NameOf) => string;
const sentences = new Map<string, Sentence>(
  Object.values(definitions)
    .flat()
    .map((one) => [one.type, one.sentence as unknown as Sentence]),
);

/**
 * A message in one sentence.
 *
 * @param nameOf gives the name of a server for its uuid, where it is known
 */
export function sentence(message: Message, nameOf: NameOf = (id) => id): string {
  const text = sentences.get(message.type);
  if (text === undefined) throw new RangeError(`no message type ${message.type}`);
  return text(message, nameOf);
}
