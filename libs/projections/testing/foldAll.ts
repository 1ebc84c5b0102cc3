import type { StoredEvent } from '@kronos/contracts';
import { anchorOf } from '../src/checkpoint.ts';
import { createFolder } from '../src/evolve.ts';
import type { LogState } from '../src/state.ts';

/** The state that the events of a log fold to, and the anchor of a checkpoint at the last of them. */
export async function foldAll(
  events: AsyncIterable<StoredEvent>,
): Promise<{ readonly state: LogState; readonly anchor: string }> {
  const folder = createFolder();
  let anchor = '';
  for await (const stored of events) {
    folder.apply(stored);
    anchor = anchorOf(stored);
  }
  return { state: folder.snapshot(), anchor };
}
