import { z } from 'zod';
import { defineCommand } from './define.ts';
import { comment } from './phrases.ts';

/**
 * A custodian states that unreadable events are to be skipped: all from `sequence` to `through` (inclusive) with the same
 * aggregate. It travels on its own subject, on which operators cannot publish. The comment is the reason.
 */
export const eventSkipped = defineCommand({
  type: 'event.skipped',
  writers: ['custodian'],
  addressesAll: true,
  holdsInWhatIf: false,
  data: { sequence: z.int().min(1), through: z.int().min(1) },
  names: { sequence: 'kept', through: 'kept' },
  example: { sequence: 1412, through: 1412 },
  sentence: (event) => {
    const { sequence, through } = event.data;
    return `skipped the unreadable ${sequence === through ? `event ${sequence}` : `events ${sequence} to ${through}`}${comment(event)}`;
  },
});
