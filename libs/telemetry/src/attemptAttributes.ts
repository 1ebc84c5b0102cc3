import type { Attempt } from '@kronos/contracts';
import { attributes } from './names.ts';

/** The attributes that name an attempt to move a VM. */
export const attemptAttributes = ({ planId, taskId, attempt, serverId, from, destination }: Attempt) => ({
  [attributes.planId]: planId,
  [attributes.taskId]: taskId,
  [attributes.attempt]: attempt,
  [attributes.serverId]: serverId,
  [attributes.sourceHost]: from,
  [attributes.destinationHost]: destination,
});
