/** The definitions of the events of the log, by type. */

import type { Naming } from './messages/define.ts';
import { definitions } from './messages/list.ts';
import type { ControlType, LogEvent, LogEventType, UnreadableEvent } from './messages.ts';

export type { Naming } from './messages/define.ts';

type Definition = {
  readonly type: LogEventType;
  readonly holdsInWhatIf?: boolean;
  readonly names: Readonly<Record<string, Naming>>;
  readonly example?: Readonly<Record<string, unknown>>;
};

const all: readonly Definition[] = [
  ...definitions.plans,
  ...definitions.results,
  ...definitions.controls,
  ...definitions.custody,
];

/** The commands that keep their meaning when other plans are made. */
export const holdInWhatIf: ReadonlySet<string> = new Set(
  all.filter(({ holdsInWhatIf }) => holdsInWhatIf === true).map(({ type }) => type),
);

const names = new Map(all.map((one) => [one.type, one.names]));

/** Field of the data of a type -> the kind of thing that it names. */
export const namesOf = (type: LogEventType): Readonly<Record<string, Naming>> => names.get(type) ?? {};

/** An example of the data of each command, without the id of the command and the comment. */
export const commandExamples = Object.fromEntries(
  all.flatMap(({ type, example }) => (example === undefined ? [] : [[type, example]])),
) as Readonly<Record<ControlType, Readonly<Record<string, unknown>>>>;

/** An attempt to move a VM, as every event about one names it. */
export type Attempt = Pick<
  Extract<LogEvent, { readonly type: 'migration.started' }>['data'],
  'taskId' | 'planId' | 'serverId' | 'attempt' | 'from' | 'destination'
>;

/** The attempt that an event is about; null: it is about none. */
export const attemptIn = (event: LogEvent | UnreadableEvent): Attempt | null =>
  'data' in event && 'serverId' in event.data && 'attempt' in event.data ? event.data : null;
