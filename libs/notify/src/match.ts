import { matchesPattern } from '@kronos/config';
import { ALL } from '@kronos/contracts';
import type { Notice } from './notice.ts';

export type Wants = { readonly types: readonly string[]; readonly aggregates: readonly string[] };

/** Whether a sink takes a notice. Every sink takes a notice about all aggregates. */
export const wants = (
  { types, aggregates }: Wants,
  { topic, aggregate }: Pick<Notice, 'topic' | 'aggregate'>,
): boolean =>
  types.some((type) => matchesPattern(type, topic)) &&
  (aggregate === ALL || aggregates.some((pattern) => matchesPattern(pattern, aggregate)));
