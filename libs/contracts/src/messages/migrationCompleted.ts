import { z } from 'zod';
import { cellResultSchema, novaFactsSchema } from '../attempts.ts';
import { reasonSchema } from '../envelope.ts';
import { moveEnd } from '../moveEnd.ts';
import { took } from '../phrases.ts';
import { attemptNames, attemptOf } from './attempt.ts';
import { defineEvent } from './define.ts';
import { moveText } from './phrases.ts';

const data = z.object({
  ...attemptOf,
  /** `alreadyThere`: it was on the destination before anything was called. */
  outcome: z.enum(['migrated', 'alreadyThere']),
  /** The server's host, by Nova. */
  host: z.string(),
  retries: z.int().min(0),
  nova: novaFactsSchema.nullable(),
  /** Problems after the move. A move with problems is not a full success (see `moveEnd`). */
  warnings: z.array(reasonSchema),
  /** Of a move between cells. */
  cell: cellResultSchema.optional(),
});

export const migrationCompleted = defineEvent({
  type: 'migration.completed',
  writers: ['executor'],
  data,
  names: {
    ...attemptNames,
    outcome: 'kept',
    host: 'host',
    retries: 'kept',
    nova: 'nested',
    warnings: 'nested',
    cell: 'nested',
  },
  sentence: (event, nameOf) => {
    const { outcome, host, serverId, nova, warnings } = event.data;
    if (outcome === 'alreadyThere') return `${nameOf(serverId)} was already on ${host}`;
    const end = moveEnd(event);
    if (end === 'plain') return `${moveText(event, nameOf)} completed${took(nova?.totalMs)}`;
    const how = end === 'damaged' ? 'ended with its server in ERROR' : 'ended with warnings';
    return `${moveText(event, nameOf)} ${how}${took(nova?.totalMs)}: ${warnings.map(({ text }) => text).join('; ')}`;
  },
});
export type MigrationCompleted = z.infer<typeof migrationCompleted.schema>;
