import { connectEventLog, type EventLog, type LogView } from '@kronos/eventlog';
import { createSession, type Session } from '@kronos/openstack';
import { folding, type LogState } from '@kronos/projections';

export interface Parts {
  readonly log: EventLog;
  readonly view: LogView<LogState>;
  readonly session: Session;
}

/** The connections of one executor: the log, folded to its end, and a session of the simulated cloud's administrator. */
export async function openParts(
  servers: { readonly natsUrl: string; readonly authUrl: string },
  name: string,
  session: Omit<Parameters<typeof createSession>[0], 'auth'>,
): Promise<Parts> {
  const log = await connectEventLog({ servers: [servers.natsUrl], name });
  const view = await log.view(folding());
  return {
    log,
    view,
    session: createSession({
      auth: {
        authType: 'password',
        authUrl: servers.authUrl,
        username: 'admin',
        password: 'secret',
        projectName: 'admin',
        userDomainName: 'Default',
        projectDomainName: 'Default',
      },
      ...session,
    }),
  };
}
