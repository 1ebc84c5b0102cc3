/** Parts of sentences, for people. */

/** The start of a plan, for people. */
export const releaseWords = {
  released: 'released',
  proposed: 'waits for approval',
  dryRun: 'dry run',
  none: 'not released',
} as const;
/** The outcome of a decision, for people. */
export const decisionWords = { planned: 'planned', quiet: 'no plan', gated: 'blocked' } as const;

/** Words with which a sentence may begin and that keep their capital letter within one. */
const NAMES = new Set(['Nova', 'Placement', 'Prometheus', 'Kronos', 'Keystone', 'Cinder', 'Neutron', 'Python']);

/** A sentence as part of another one: without its full stop, and with a small letter unless it begins with a name. */
export function clause(text: string): string {
  const first = /^[A-Z][a-z]*\b/.exec(text)?.[0];
  const begin = first === undefined || NAMES.has(first) ? text : text.charAt(0).toLowerCase() + text.slice(1);
  return begin.replace(/\.$/, '');
}

/** Says that a person closed a task, with the comment. */
export const closedText = ({ by, comment }: { readonly by: string; readonly comment: string | null }): string =>
  `closed by ${by}${comment === null ? '' : ` (${comment})`}`;

/** ` after 3.1 s`; nothing where the duration is not known. */
export const took = (ms: number | null | undefined): string =>
  ms === null || ms === undefined ? '' : ` after ${(ms / 1000).toFixed(1)} s`;
