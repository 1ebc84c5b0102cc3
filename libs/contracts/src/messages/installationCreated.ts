import { z } from 'zod';
import { defineEvent } from './define.ts';
import { comment } from './phrases.ts';

const statements = {
  provisioned: 'provisioned the log of installation',
  newLog: 'accepted the log as it is, as installation',
  restored: 'restored an archive up to here; the log continues as installation',
} as const;

/**
 * Names the log: the first event of a new one, and, as a statement of a person, the event from which a log counts that was
 * found to be another one or to have lost events. On `_all_`, by the `provisioner`. The newest one is in force.
 */
export const installationCreated = defineEvent({
  type: 'installation.created',
  writers: ['provisioner'],
  addressesAll: true,
  data: z.object({
    installationId: z.uuid(),
    /**
     * `provisioned`: nothing else was known. `newLog`: use this log as it is, whatever else was seen (`kronos provision
     * --new-log`). `restored`: an archive was restored up to here (`kronos archive restore`).
     */
    statement: z.enum(['provisioned', 'newLog', 'restored']),
    comment: z.string().nullable(),
  }),
  names: { installationId: 'kept', statement: 'kept', comment: 'text' },
  sentence: (event) => `${statements[event.data.statement]} ${event.data.installationId}${comment(event)}`,
});
export type InstallationCreated = z.infer<typeof installationCreated.schema>;
