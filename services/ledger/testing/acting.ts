import type { EventLog } from '@kronos/eventlog';
import { createIdentity } from '@kronos/openstack';
import { startSim } from '@kronos/simcloud';
import type { Acting } from '../src/acting/deps.ts';
import type { CommandRequest } from '../src/api/commandSchemas.ts';

/** People of the simulated cloud: Ada may act, Carol may also skip events, Grace has no role for either. */
export const people = {
  ada: { userName: 'ada', password: 'pw-of-ada-7c1e', roles: ['member', 'kronos_operator'] },
  carol: { userName: 'carol', password: 'pw-of-carol-51f' },
  grace: { userName: 'grace', password: 'pw-of-grace-90d' },
} as const;

/** A simulated Keystone where people log in, and what a ledger needs to let them act. */
export async function actingBed(log: Pick<EventLog, 'append'>, options: Partial<Acting['options']> = {}) {
  const sim = await startSim({
    scenario: {
      hosts: [{ name: 'h1' }],
      users: [
        { name: people.ada.userName, password: people.ada.password, roles: [...people.ada.roles] },
        {
          name: people.carol.userName,
          password: people.carol.password,
          roles: ['kronos_operator', 'kronos_custodian'],
        },
        { name: people.grace.userName, password: people.grace.password, roles: ['member'] },
      ],
      applicationCredentials: [{ id: 'cred-1', name: 'console', secret: 'secret-of-cred-1', user: 'ada' }],
    },
  });
  const identity = createIdentity(sim.urls.identity, {});
  const acting: Acting = {
    options: {
      userDomainName: 'Default',
      projectName: 'admin',
      projectDomainName: 'Default',
      roles: ['kronos_operator'],
      custodianRoles: ['kronos_custodian'],
      cells: [],
      idleMs: 900_000,
      maxSessions: 64,
      allowedHosts: [],
      ...options,
    },
    identity,
    log,
    custody: log,
  };
  return {
    sim,
    acting,
    async close(): Promise<void> {
      await identity.close();
      await sim.close();
    },
  };
}

export type Answered = { readonly status: number; readonly body: Record<string, unknown>; readonly headers: Headers };

/** A page of the console in a browser: it keeps the cookie and the CSRF token. */
export function actingPage(url: string) {
  let cookie = '';
  let csrf = '';
  async function call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string | null> = {},
  ): Promise<Answered> {
    const all = {
      origin: url,
      'content-type': 'application/json',
      cookie,
      'x-kronos-csrf': csrf,
      ...headers,
    };
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: Object.fromEntries(
        Object.entries(all).filter((one): one is [string, string] => one[1] !== null && one[1] !== ''),
      ),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    const set = response.headers.get('set-cookie');
    if (set !== null) cookie = set.split(';')[0] ?? '';
    if (typeof answer.csrf === 'string') ({ csrf } = answer as { csrf: string });
    return { status: response.status, body: answer, headers: response.headers };
  }
  return {
    call,
    logIn: ({ userName, password }: { readonly userName: string; readonly password: string }) =>
      call('POST', '/session', { method: 'password', userName, password }),
    foresee: (command: CommandRequest) => call('POST', '/commands/preview', { command }),
    give: (command: CommandRequest, digest: unknown, comment: string | null = null) =>
      call('POST', '/commands', { command, digest, comment }),
  };
}
