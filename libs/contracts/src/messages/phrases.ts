/** Parts of the sentences of several messages. */
import type { NameOf } from './define.ts';

type Moved = { readonly serverId: string; readonly from: string; readonly destination: string };

export const moveText = ({ data }: { readonly data: Moved }, nameOf: NameOf): string =>
  `${nameOf(data.serverId)} from ${data.from} to ${data.destination}`;

export const stepsText = (numbers: readonly number[] | null): string =>
  numbers === null ? 'all steps' : `step${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;

export const comment = ({ data }: { readonly data: { readonly comment: string | null } }): string =>
  data.comment === null ? '' : ` (${data.comment})`;
