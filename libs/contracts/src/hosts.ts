import { z } from 'zod';
import { message, reasonSchema } from './envelope.ts';

/** A change of the nova-compute service of a host. */
const hostActSchema = z.enum(['disable', 'enable']);
export type HostAct = z.infer<typeof hostActSchema>;

/** The most characters that Nova takes as the reason of a disabled service. */
const MAX_DISABLED_REASON = 255;

/** A drain of one host: `drainId` is the id of the command that asked for it. */
const drainOf = { drainId: z.string(), host: z.string() };
const actOf = { ...drainOf, act: hostActSchema, attempt: z.int().min(1) };

/**
 * An executor alone may change the service of the host from here on. The request follows within 10 s or is not sent; a
 * successor waits until it can no longer be sent and then reads its effect.
 */
const hostClaimedSchema = message('host.claimed', 1, z.object(actOf));

/** The host takes no more servers: by Kronos, or because somebody had disabled it before. */
const hostDisabledSchema = message(
  'host.disabled',
  1,
  z.object({
    ...drainOf,
    /** False: it was disabled already. Kronos will not enable it. */
    byKronos: z.boolean(),
    /** As Nova shows it. */
    disabledReason: z.string().nullable(),
  }),
);

/** Nova has no server on the host any more: the drain has reached its end. The host stays disabled. */
const hostDrainedSchema = message('host.drained', 1, z.object(drainOf));

/** The host is enabled, and its drain is over. */
const hostEnabledSchema = message(
  'host.enabled',
  1,
  z.object({
    ...drainOf,
    /** False: somebody else enabled it, which ends a drain too. */
    byKronos: z.boolean(),
  }),
);

/** The drain is over, and the host stays as it is: it is not Kronos that disabled it, or somebody changed it since. */
const hostLeftDisabledSchema = message(
  'host.leftDisabled',
  1,
  z.object({
    ...drainOf,
    reason: reasonSchema,
    /** As Nova shows it. */
    disabledReason: z.string().nullable(),
  }),
);

/** Nova refused to change the service, or it could not be judged. The claim is over; another attempt follows later. */
const hostActFailedSchema = message(
  'host.actFailed',
  1,
  z.object({
    ...actOf,
    /** HTTP status of Nova's answer; null: Nova gave none. */
    status: z.int().nullable(),
    /** Nova's own words, or why nothing was sent. */
    text: z.string(),
  }),
);

export const hostSchemas = [
  hostClaimedSchema,
  hostDisabledSchema,
  hostDrainedSchema,
  hostEnabledSchema,
  hostLeftDisabledSchema,
  hostActFailedSchema,
] as const;
export type HostEvent = z.infer<(typeof hostSchemas)[number]>;

/**
 * The reason with which Kronos disables a host. It names the drain, so that Kronos knows its own work, and whether somebody
 * changed it since.
 */
export const disabledReasonOf = (drainId: string, person: string, comment: string | null): string => {
  const text = `Kronos drain ${drainId} by ${person}${comment === null ? '' : `: ${comment}`}`;
  return [...text].slice(0, MAX_DISABLED_REASON).join('').trimEnd();
};
