import { describe, expect, it } from 'vitest';
import { type AuthOptions, authRequest, identityOf, keystoneUrl } from './auth.ts';
import { type Catalog, chooseEndpoint } from './catalog.ts';

const base: AuthOptions = { authUrl: 'http://keystone:5000' };

describe('authRequest', () => {
  it('scopes a password to a project by names', () => {
    const options = {
      ...base,
      username: 'u',
      password: 'p',
      userDomainName: 'UD',
      projectName: 'pr',
      projectDomainName: 'PD',
    };
    expect(authRequest(options)).toEqual({
      auth: {
        identity: { methods: ['password'], password: { user: { name: 'u', domain: { name: 'UD' }, password: 'p' } } },
        scope: { project: { name: 'pr', domain: { name: 'PD' } } },
      },
    });
  });

  it('prefers ids, and needs no domain beside them', () => {
    expect(
      authRequest({ ...base, userId: 'u1', username: 'u', password: 'p', projectId: 'p1', projectName: 'pr' }),
    ).toEqual({
      auth: {
        identity: { methods: ['password'], password: { user: { id: 'u1', password: 'p' } } },
        scope: { project: { id: 'p1' } },
      },
    });
  });

  it('fills missing domains from the default domain', () => {
    expect(
      authRequest({ ...base, username: 'u', password: 'p', projectName: 'pr', defaultDomainId: 'default' }),
    ).toEqual({
      auth: {
        identity: {
          methods: ['password'],
          password: { user: { name: 'u', domain: { id: 'default' }, password: 'p' } },
        },
        scope: { project: { name: 'pr', domain: { id: 'default' } } },
      },
    });
  });

  it.each([
    [{ systemScope: 'all' }, { system: { all: true } }],
    [{ domainId: 'd' }, { domain: { id: 'd' } }],
    [{ domainName: 'D' }, { domain: { name: 'D' } }],
  ])('scopes by %j', (more, scope) => {
    const request = authRequest({ ...base, userId: 'u', password: 'p', ...more });
    expect(request).toMatchObject({ auth: { scope } });
  });

  it('sends an application credential by id or by name with its user, without a scope', () => {
    const authType = 'v3applicationcredential';
    const secret = { authType, applicationCredentialSecret: 's', projectName: 'ignored' };
    expect(authRequest({ ...base, ...secret, applicationCredentialId: 'ac' })).toEqual({
      auth: {
        identity: { methods: ['application_credential'], application_credential: { id: 'ac', secret: 's' } },
      },
    });
    expect(authRequest({ ...base, ...secret, applicationCredentialName: 'n', userId: 'u' })).toEqual({
      auth: {
        identity: {
          methods: ['application_credential'],
          application_credential: { name: 'n', secret: 's', user: { id: 'u' } },
        },
      },
    });
  });

  it('sends a token with a scope or without', () => {
    expect(authRequest({ ...base, authType: 'v3token', token: 't', projectId: 'p' })).toEqual({
      auth: { identity: { methods: ['token'], token: { id: 't' } }, scope: { project: { id: 'p' } } },
    });
    expect(authRequest({ ...base, authType: 'token', token: 't' })).toEqual({
      auth: { identity: { methods: ['token'], token: { id: 't' } } },
    });
  });

  it.each([
    [{ authType: 'kerberos' }, 'auth_type', 'v3applicationcredential'],
    [{ password: 'p', projectId: 'x' }, 'username', 'user_id'],
    [{ username: 'u', userDomainId: 'd', projectId: 'x' }, 'password', 'must be set'],
    [{ username: 'u', password: 'p', projectId: 'x' }, 'user_domain_name', 'user_domain_id'],
    [{ userId: 'u', password: 'p', projectName: 'x' }, 'project_domain_name', 'project_domain_id'],
    [{ userId: 'u', password: 'p' }, 'project_name', 'system_scope'],
    [{ userId: 'u', password: 'p', systemScope: 'some' }, 'system_scope', 'all'],
    [{ authType: 'v3token' }, 'token', 'must be set'],
    [{ authType: 'v3applicationcredential' }, 'application_credential_secret', 'must be set'],
    [
      { authType: 'v3applicationcredential', applicationCredentialSecret: 's' },
      'application_credential_id',
      'application_credential_name',
    ],
  ])('refuses %j, naming the option and the remedy', (more, option, remedy) => {
    expect(() => authRequest({ ...base, ...more })).toThrow(
      expect.objectContaining({
        code: 'KRONOS_OPENSTACK_AUTH_OPTIONS',
        option,
        message: expect.stringContaining(remedy),
      }),
    );
  });
});

describe('identityOf', () => {
  it.each([
    [{ username: 'u', userDomainName: 'D' }, 'user u in domain D'],
    [{ userId: 'u1' }, 'user u1'],
    [
      { authType: 'v3applicationcredential', applicationCredentialId: 'ac', applicationCredentialSecret: 's3cret' },
      'application credential ac',
    ],
    [{ authType: 'v3token', token: 's3cret' }, 'the given token'],
  ])('of %j is %s', (more, expected) => {
    expect(identityOf({ ...base, password: 's3cret', ...more })).toBe(expected);
  });
});

describe('keystoneUrl', () => {
  it.each([
    ['http://k:5000', 'http://k:5000/v3'],
    ['http://k:5000/', 'http://k:5000/v3'],
    ['http://k:5000/v3/', 'http://k:5000/v3'],
    ['https://cloud/identity', 'https://cloud/identity/v3'],
    ['https://cloud/identity/v2.0', 'https://cloud/identity/v3'],
  ])('of %s is %s', (url, expected) => {
    expect(keystoneUrl(url)).toBe(expected);
  });

  it.each(['keystone', 'ftp://keystone/v3'])('refuses %s', (url) => {
    expect(() => keystoneUrl(url)).toThrow(/auth_url: "/);
  });
});

describe('chooseEndpoint', () => {
  const at = (face: string, region: string): Catalog[number]['endpoints'][number] => ({
    interface: face,
    region_id: region,
    url: `http://${face}.${region}/`,
  });
  const one: Catalog = [{ type: 'compute', endpoints: [at('public', 'R1'), at('internal', 'R1'), at('admin', 'R1')] }];
  const two: Catalog = [{ type: 'compute', endpoints: [at('public', 'R1'), at('public', 'R2'), at('internal', 'R2')] }];

  it('takes the first interface that there is, internal before public by default', () => {
    expect(chooseEndpoint(one, 'compute')).toBe('http://internal.R1');
    expect(chooseEndpoint(one, 'compute', ['admin', 'public'])).toBe('http://admin.R1');
    expect(chooseEndpoint(one, 'compute', ['publicURL'])).toBe('http://public.R1');
    expect(chooseEndpoint(two, 'compute', ['internal', 'public'], 'R1')).toBe('http://public.R1');
  });

  it('knows a service by its older name', () => {
    expect(chooseEndpoint([{ type: 'computev21', endpoints: [at('public', 'R1')] }], 'compute')).toBe(
      'http://public.R1',
    );
  });

  it('does not guess among regions', () => {
    expect(() => chooseEndpoint(two, 'compute', ['public'])).toThrow(/several regions \(R1, R2\); set region_name/);
    expect(chooseEndpoint(two, 'compute', ['public'], 'R2')).toBe('http://public.R2');
  });

  it.each([
    [[], undefined, 'is the token scoped to a project?'],
    [[{ type: 'image', endpoints: [] }], undefined, 'it has image'],
    [one, 'R9', 'in region R9; it has public in R1, internal in R1, admin in R1'],
  ])('says what the catalog has when it lacks the service', (catalog, region, text) => {
    expect(() => chooseEndpoint(catalog, 'compute', undefined, region)).toThrow(text);
  });
});
