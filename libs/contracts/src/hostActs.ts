import { z } from 'zod';

/** A change of the nova-compute service of a host. */
export const hostActSchema = z.enum(['disable', 'enable']);
export type HostAct = z.infer<typeof hostActSchema>;

/** The most characters that Nova takes as the reason of a disabled service. */
const MAX_DISABLED_REASON = 255;

/**
 * The reason with which Kronos disables a host. It names the drain, so that Kronos knows its own work, and whether somebody
 * changed it since.
 */
export const disabledReasonOf = (drainId: string, person: string, comment: string | null): string => {
  const text = `Kronos drain ${drainId} by ${person}${comment === null ? '' : `: ${comment}`}`;
  return [...text].slice(0, MAX_DISABLED_REASON).join('').trimEnd();
};
