import type { Message, ObjectRef, Snapshot, SnapshotTaken } from '@kronos/contracts';
import type { Appended, AppendOptions, EventLog, SnapshotEnvelope } from './types.ts';
import type { Wire } from './wire.ts';

/**
 * A write of a process with all its options. A wrapper changes a part and passes on the rest (`{ ...write, message }`), so an option that it
 * does not know reaches the server. A wrapper refuses a kind that it does not know, see {@link unknownWrite}.
 */
export type Write =
  | { readonly kind: 'message'; readonly message: Message; readonly options: AppendOptions }
  /** The body first, then the message that refers to it. */
  | {
      readonly kind: 'snapshot';
      readonly snapshot: Snapshot;
      readonly envelope: SnapshotEnvelope;
      readonly options: Pick<AppendOptions, 'veto'>;
    }
  | { readonly kind: 'object'; readonly bucket: string; readonly label: string; readonly body: Uint8Array };

export type Written<W extends Write> = W extends { readonly kind: 'object' }
  ? ObjectRef
  : Appended & { readonly message: W extends { readonly kind: 'snapshot' } ? SnapshotTaken : Message };

/**
 * The two seams of the event log. Whatever method is called, what this process writes passes `append` and each stored message
 * that it reads passes `read`. Only `restore`, which publishes the bytes of a copy again, and the work of the provisioner pass
 * neither.
 */
export type Seams = {
  readonly append: <W extends Write>(write: W) => Promise<Written<W>>;
  readonly read: Wire['read'];
};

/** Decorates the seams of one connection. `log` answers questions about it. */
export type Wrap = (inner: Seams, log: Pick<EventLog, 'usage'>) => Seams;

/** For the `default` of a wrapper that tells the kinds apart. */
export function unknownWrite(write: never): never {
  throw new TypeError(`a wrapper of the event log does not know writes of the kind ${(write as Write).kind}: add it`);
}
