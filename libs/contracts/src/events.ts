/** What the definitions say about the events of the log, by type. */

import type { Naming } from './messages/define.ts';
import { definitions } from './messages/list.ts';
import type { ControlType, LogEventType } from './messages.ts';

export type { Naming } from './messages/define.ts';

type Definition = {
  readonly type: LogEventType;
  readonly addressesAll?: boolean;
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

const typesWhere = (holds: (definition: Definition) => boolean | undefined): ReadonlySet<string> =>
  new Set(all.filter((one) => holds(one) === true).map(({ type }) => type));

/** The types of which the aggregate may be `_all_`. */
export const addressAll = typesWhere(({ addressesAll }) => addressesAll);

/** The commands that keep their meaning when other plans are made. */
export const holdInWhatIf = typesWhere(({ holdsInWhatIf }) => holdsInWhatIf);

const names = new Map(all.map((one) => [one.type, one.names]));

/** What each field of the data of a type names. */
export const namesOf = (type: LogEventType): Readonly<Record<string, Naming>> => names.get(type) ?? {};

/** An example of the data of each command, without the id of the command and the comment. */
export const commandExamples = Object.fromEntries(
  all.flatMap(({ type, example }) => (example === undefined ? [] : [[type, example]])),
) as Readonly<Record<ControlType, Readonly<Record<string, unknown>>>>;
