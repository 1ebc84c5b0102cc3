import { z } from 'zod';
import { defineEvent } from './define.ts';
import { actOf } from './drain.ts';

/** Nova refused to change the service, or it could not be judged. The claim is over; another attempt follows later. */
export const hostActFailed = defineEvent({
  type: 'host.actFailed',
  writers: ['executor'],
  data: z.object({
    ...actOf,
    /** HTTP status of Nova's answer; null: Nova gave none. */
    status: z.int().nullable(),
    /** Nova's own words, or why nothing was sent. */
    text: z.string(),
  }),
  names: { drainId: 'kept', host: 'host', act: 'kept', attempt: 'kept', status: 'kept', text: 'sentence' },
  sentence: (event) =>
    `attempt ${event.data.attempt} to ${event.data.act} ${event.data.host} failed${event.data.status === null ? '' : ` with ${event.data.status}`}: ${event.data.text}`,
});
