import { type Actor, type Control, iso, messageId, parseMessage } from '@kronos/contracts';

/** Author, time and id of a command: every command of a person states them. */
export type Asking = {
  readonly commandId: string;
  readonly person: string;
  /** Version of Kronos that the command is given with. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  readonly comment: string | null;
};

type ControlType = Control['type'];
/** The content of a command, without its author. */
type ControlData<T extends ControlType> = Omit<Extract<Control, { type: T }>['data'], 'commandId' | 'comment'>;

/** A command of a person as the event that they asked. @throws RangeError when the data do not fit the type */
export function control<T extends ControlType>(
  type: T,
  aggregate: string,
  data: ControlData<T>,
  { commandId, person, version, nowMs, comment }: Asking,
): Control {
  const service = type === 'event.skipped' ? 'custodian' : 'operator';
  const by: Actor = { service, instance: person, version };
  const parsed = parseMessage({
    type,
    version: 1,
    id: messageId.control(commandId),
    time: iso(nowMs),
    aggregate,
    by,
    correlationId: commandId,
    causationId: null,
    data: { commandId, comment, ...data },
  });
  if (!parsed.ok) throw new RangeError(`${type}: ${parsed.problem}`);
  return parsed.message as Control;
}
