import { z } from 'zod';
import { type Actor, message } from '../envelope.ts';

/** The authors of messages: services, and the `kronos` command under one of its NATS users. */
export type Service = Actor['service'];

/** Gives the name of a server for its uuid, where it is known. */
export type NameOf = (serverId: string) => string;

/** The kind of thing that a field of an event names. An anonymous recording has made-up names in its place. */
export type Naming =
  /** One thing of this kind, or null. */
  | 'aggregate'
  | 'flavor'
  | 'host'
  | 'project'
  | 'request'
  | 'server'
  | 'serverName'
  | 'uuid'
  /** An id of Kronos, with the token of an aggregate. */
  | 'id'
  /** Nobody: figures, times, words of Kronos and of Nova. */
  | 'kept'
  /** Anything: free text of people and of Nova. It is left out. */
  | 'text'
  /** The names in a sentence of Kronos or of Nova. */
  | 'sentence'
  /** Names of unknown kinds, anywhere in the value. */
  | 'anywhere'
  /** By the names of its own fields. */
  | 'nested'
  /** Flavors, and the ones that take their place. */
  | 'flavors'
  /** The needs of a new VM. */
  | 'shape';

type Envelope<T extends string, D extends z.ZodType> = ReturnType<typeof message<T, 1, D>>;

type Parts<T extends string, D extends z.ZodType> = {
  readonly type: T;
  /** The services that may write it. With the family (`list.ts`) this is the one table of authority. */
  readonly writers: readonly Service[];
  readonly data: D;
  /** The message in one sentence, without a full stop. */
  readonly sentence: (message: z.infer<Envelope<T, D>>, nameOf: NameOf) => string;
  /** Why its author may not write this one; null when it may. Absent: `writers` says all. */
  readonly misuse?: (message: z.infer<Envelope<T, D>>) => string | null;
};

type Names<D> = { readonly [K in keyof D]-?: Naming };

type EventParts<T extends string, D extends z.ZodType> = Parts<T, D> & {
  /** Field of the data -> the kind of thing that it names. */
  readonly names: Names<z.infer<D>>;
  /** Its aggregate may be `_all_`. Absent: it belongs to one aggregate. */
  readonly addressesAll?: boolean;
};

/** A message that travels beside the log. */
export const defineMessage = <const T extends string, D extends z.ZodType>(parts: Parts<T, D>) => ({
  ...parts,
  schema: message(parts.type, 1, parts.data),
});

/** An event of the log. */
export const defineEvent = <const T extends string, D extends z.ZodType>(parts: EventParts<T, D>) => ({
  ...parts,
  schema: message(parts.type, 1, parts.data),
});

const given = { commandId: z.string(), comment: z.string().nullable() };

type CommandData<D extends z.ZodRawShape> = z.ZodObject<typeof given & D>;

type CommandParts<T extends string, D extends z.ZodRawShape> = {
  readonly type: T;
  /** Default: an operator. */
  readonly writers?: readonly Service[];
  /** Its aggregate may be `_all_`. */
  readonly addressesAll: boolean;
  /** It keeps its meaning when other plans are made: a what-if takes it over from the recorded log. */
  readonly holdsInWhatIf: boolean;
  /** The data besides the id of the command and the comment of its author. */
  readonly data: D;
  readonly names: Names<z.infer<z.ZodObject<D>>>;
  /** An example of the data. */
  readonly example: z.infer<z.ZodObject<D>>;
  readonly sentence: (message: z.infer<Envelope<T, CommandData<D>>>, nameOf: NameOf) => string;
};

/** A command of a person, on the log. The fold decides whether it takes effect. */
export const defineCommand = <const T extends string, D extends z.ZodRawShape>(parts: CommandParts<T, D>) => {
  const data: CommandData<D> = z.object({ ...given, ...parts.data });
  return {
    ...parts,
    writers: parts.writers ?? ['operator'],
    names: { commandId: 'kept', comment: 'text', ...parts.names },
    data,
    schema: message(parts.type, 1, data),
  } as const;
};
