import type { Reason } from '@kronos/contracts';

/**
 * Why an aggregate is not planned this cycle (`problems`), and what was seen that hinders nothing (`notes`).
 * The codes are part of the snapshot's form: people search for them.
 */
export const problemCodes = [
  'aggregates-unknown',
  'aggregate-not-found',
  'hypervisors-unknown',
  'servers-unknown',
  'server-groups-unknown',
  'migrations-unknown',
  'host-in-two-aggregates',
  'host-with-several-hypervisors',
  'servers-on-unknown-host',
  'hosts-of-down-cell',
  'servers-of-down-cell',
  'server-vanished',
  'server-without-flavor',
  'server-group-policy-unknown',
] as const;
export type ProblemCode = (typeof problemCodes)[number];

export const noteCodes = [
  'aggregate-empty',
  'capacity-unknown',
  'flavors-unknown',
  'group-broken',
  'host-cells-unknown',
  'host-cells-unread',
  'host-without-hypervisor',
  'host-without-service',
  'hypervisor-type-ignored',
  'host-label-unmatched',
  'migration-abandoned',
  'move-cost-out-of-range',
  'move-cost-unknown',
  'ports-unknown',
  'ports-unread',
  'ports-unseen',
  'server-cells-unread',
  'server-seen-twice',
  'services-unknown',
  'traits-unknown',
  'vm-label-ambiguous',
  'vm-series-duplicate',
  'vm-value-out-of-range',
] as const;
export type NoteCode = (typeof noteCodes)[number];

type Detail = NonNullable<Reason['detail']>;

const reason = (code: string, text: string, detail?: Detail): Reason =>
  detail === undefined ? { code, text } : { code, text, detail };

export const problem = (code: ProblemCode, text: string, detail?: Detail): Reason => reason(code, text, detail);
export const note = (code: NoteCode, text: string, detail?: Detail): Reason => reason(code, text, detail);

/** A list of Nova that could not be read. `detail.error`: the code of the error. */
export const unread = (
  code: ProblemCode,
  what: string,
  { code: error, text }: { readonly code: string; readonly text: string },
): Reason => problem(code, `${what} could not be read: ${text}`, { error });
