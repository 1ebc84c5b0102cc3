import { randomUUID } from 'node:crypto';
import type { EventLog } from '@kronos/eventlog';
import { ledgerBed, type TestLedger } from '@kronos/ledger/testing';
import { actingPage } from '@kronos/ledger/testing/acting';
import { createIdentity, type Identity } from '@kronos/openstack';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bedUrls } from './urls.ts';

/** Prefix of everything that this test creates in Keystone. */
const OWN = `kronos-acting-${randomUUID().slice(0, 8)}`;
const ROLE = `${OWN}-operator`;
const pause = { command: 'pause', aggregate: 'gpu' } as const;

type Thing = { readonly id: string };

/** Keystone as its admin and as the users of the test. */
class Keystone {
  #admin = '';
  readonly #made: string[] = [];

  async open(): Promise<void> {
    this.#admin = await this.token('admin', 'secret', 'admin');
  }

  /** A token of the user for the project. */
  async token(name: string, password: string, project: string): Promise<string> {
    const domain = { id: 'default' };
    const body = {
      auth: {
        identity: { methods: ['password'], password: { user: { name, password, domain } } },
        scope: { project: { name: project, domain } },
      },
    };
    const answer = await this.#send('POST', '/auth/tokens', '', body);
    return answer.headers.get('x-subject-token') ?? '';
  }

  /** Creates a role, a project or a user, and deletes it at the end. */
  async make(kind: 'role' | 'project' | 'user', name: string, more: object = {}): Promise<string> {
    const domain = kind === 'role' ? {} : { domain_id: 'default' };
    const answer = await this.#send('POST', `/${kind}s`, this.#admin, { [kind]: { name, ...domain, ...more } });
    const { id } = ((await answer.json()) as Record<string, Thing>)[kind] as Thing;
    this.#made.unshift(`/${kind}s/${id}`);
    return id;
  }

  /** Creates an application credential as its user, because nobody else can. */
  async credential(userId: string, token: string, expiresAt: string | null): Promise<{ id: string; secret: string }> {
    const body = { application_credential: { name: randomUUID(), expires_at: expiresAt } };
    const answer = await this.#send('POST', `/users/${userId}/application_credentials`, token, body);
    return ((await answer.json()) as { application_credential: { id: string; secret: string } }).application_credential;
  }

  async grant(project: string, user: string, role: string, method: 'PUT' | 'DELETE' = 'PUT'): Promise<void> {
    await this.#send(method, `/projects/${project}/users/${user}/roles/${role}`, this.#admin);
  }

  async revoke(token: string): Promise<void> {
    await this.#send('DELETE', '/auth/tokens', this.#admin, undefined, { 'x-subject-token': token });
  }

  async close(): Promise<void> {
    for (const path of this.#made) await this.#send('DELETE', path, this.#admin);
  }

  async #send(method: string, path: string, token: string, body?: object, more: Record<string, string> = {}) {
    const answer = await fetch(`${bedUrls.identity}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(token === '' ? {} : { 'x-auth-token': token }), ...more },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
}

describe('people log in to the console with a real Keystone', () => {
  const keystone = new Keystone();
  const password = `pw-${randomUUID()}`;
  const ada = { userName: `${OWN}-ada`, password };
  const grace = { userName: `${OWN}-grace`, password };
  const carol = { userName: `${OWN}-carol`, password };
  const ids = { project: '', role: '', ada: '' };
  /** Tokens that Keystone issued to the ledger, the newest last. */
  const tokens: string[] = [];
  let bed: Awaited<ReturnType<typeof ledgerBed>>;
  let commands: EventLog;
  let identity: Identity;
  let ledger: TestLedger;
  let page: ReturnType<typeof actingPage>;

  beforeAll(async () => {
    await keystone.open();
    ids.role = await keystone.make('role', ROLE);
    const other = await keystone.make('role', `${OWN}-reader`);
    ids.project = await keystone.make('project', OWN);
    const elsewhere = await keystone.make('project', `${OWN}-elsewhere`);
    ids.ada = await keystone.make('user', ada.userName, { password });
    await keystone.grant(ids.project, ids.ada, ids.role);
    await keystone.grant(ids.project, await keystone.make('user', grace.userName, { password }), other);
    await keystone.grant(elsewhere, await keystone.make('user', carol.userName, { password }), ids.role);
    bed = await ledgerBed();
    commands = await bed.connect('console');
    const real = createIdentity(bedUrls.identity, {});
    identity = {
      ...real,
      async login(auth) {
        const told = await real.login(auth);
        tokens.push(told.token);
        return told;
      },
    };
  });
  afterAll(async () => {
    await bed?.close();
    await identity?.close();
    await keystone.close();
  });

  beforeEach(async () => {
    const options = {
      userDomainName: 'Default',
      projectName: OWN,
      projectDomainName: 'Default',
      roles: [ROLE],
      custodianRoles: [],
      cells: [],
      idleMs: 900_000,
      maxSessions: 64,
      allowedHosts: [],
    };
    ledger = await bed.start({ scope: ['gpu'] }, Date.now, { options, identity, log: commands, custody: null });
    page = actingPage(ledger.url);
    return () => ledger.stop();
  });

  /** Reads the preview of the command, and confirms it. */
  const give = async () => page.give(pause, (await page.foresee(pause)).body.digest);
  const newest = (): string => tokens.at(-1) ?? '';
  const appended = async (): Promise<number> => await bed.log.lastSequenceOf('controls', 'gpu');
  const withCredential = ({ id, secret }: { id: string; secret: string }) =>
    page.call('POST', '/session', { method: 'applicationCredential', id, secret });

  it('with a password: the command has their name, and logging out ends the token', async () => {
    expect((await page.logIn(ada)).body).toMatchObject({ person: `${ada.userName}@Default` });
    expect((await give()).body).toMatchObject({ by: `${ada.userName}@Default`, command: 'aggregate.paused' });
    expect(await identity.validate(newest())).toMatchObject({ project: { name: OWN }, roles: [ROLE] });
    expect((await page.call('DELETE', '/session')).body).toMatchObject({ person: null });
    expect(await identity.validate(newest())).toBeNull();
    for (const secret of [password, newest()]) expect(JSON.stringify(ledger.lines)).not.toContain(secret);
  });

  it('with an application credential, and not with a wrong secret of it', async () => {
    const made = await keystone.credential(ids.ada, await keystone.token(ada.userName, password, OWN), null);
    expect((await withCredential({ ...made, secret: 'wrong' })).status).toBe(401);
    expect((await withCredential(made)).body).toMatchObject({ person: `${ada.userName}@Default` });
    expect((await give()).status).toBe(200);
    expect(JSON.stringify(ledger.lines)).not.toContain(made.secret);
  });

  it('not with a wrong password, nor as somebody whom Keystone does not know', async () => {
    for (const wrong of [
      { ...ada, password: 'wrong' },
      { ...ada, userName: `${OWN}-nobody` },
    ]) {
      const { status, body, headers } = await page.logIn(wrong);
      expect([status, headers.get('set-cookie')]).toEqual([401, null]);
      expect(body.error).toContain('Keystone refused these credentials');
    }
  });

  it('not with another role on the project, nor with the role on another project', async () => {
    const { status, body } = await page.logIn(grace);
    expect([status, body.error]).toEqual([403, expect.stringContaining(`none of the roles ${ROLE}`)]);
    // The ledger revokes the token that Keystone issued for it.
    expect(await identity.validate(newest())).toBeNull();
    expect((await page.logIn(carol)).status).toBe(401);
  });

  it('and no longer act once their token is revoked', async () => {
    await page.logIn(ada);
    const { body } = await page.foresee(pause);
    const before = await appended();
    await keystone.revoke(newest());
    const refused = await page.give(pause, body.digest);
    expect([refused.status, refused.body.error]).toEqual([401, expect.stringContaining('log in again')]);
    expect((await page.foresee(pause)).status).toBe(401);
    expect(await appended()).toBe(before);
  });

  it('and no longer act once their role is taken away', async () => {
    await page.logIn(ada);
    const { body } = await page.foresee(pause);
    const before = await appended();
    await keystone.grant(ids.project, ids.ada, ids.role, 'DELETE');
    try {
      // 403 when a worker of Keystone still has the token in its cache, and shows no roles.
      expect([401, 403]).toContain((await page.give(pause, body.digest)).status);
      expect((await page.foresee(pause)).status).toBe(401);
      expect(await appended()).toBe(before);
    } finally {
      await keystone.grant(ids.project, ids.ada, ids.role);
    }
  });

  it('and no longer act once their token has expired', async () => {
    const expiresAt = new Date(Date.now() + 10_000).toISOString().replace('Z', '');
    const made = await keystone.credential(ids.ada, await keystone.token(ada.userName, password, OWN), expiresAt);
    expect((await withCredential(made)).status).toBe(200);
    const before = await appended();
    expect((await page.foresee(pause)).status).toBe(200);
    await expect.poll(async () => (await page.foresee(pause)).status, { timeout: 60_000, interval: 2_000 }).toBe(401);
    expect((await page.give(pause, 'sha256:0')).status).toBe(401);
    expect(await appended()).toBe(before);
    expect(await identity.validate(newest())).toBeNull();
  });
});
