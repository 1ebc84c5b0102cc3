import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CloudsPlaces, cloudNames, loadCloud } from './clouds.ts';
import { BadAuthOptions } from './errors.ts';

let root: string;
let places: CloudsPlaces & { cwd: string; home: string; system: string };
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kronos-clouds-'));
  places = { env: {}, cwd: join(root, 'cwd'), home: join(root, 'home'), system: join(root, 'etc') };
  for (const path of [places.cwd, join(places.home, '.config', 'openstack'), places.system])
    mkdirSync(path, { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (path: string, text: string): string => {
  writeFileSync(path, text);
  return path;
};
const cloud = (user: string): string => `clouds: {c: {auth: {auth_url: "http://k", username: ${user}, password: p}}}`;

describe('loadCloud', () => {
  it('reads one cloud into authentication options', () => {
    write(
      join(places.cwd, 'clouds.yaml'),
      `
clouds:
  c:
    auth:
      auth_url: https://k:5000/v3
      username: u
      password: 12345
      project_name: p
      user_domain_name: Default
      project_domain_id: default
    region_name: R1
    interface: internal
    verify: false
    cacert: /ca.pem
    compute_endpoint_override: http://nova
`,
    );
    expect(loadCloud('c', places)).toMatchObject({
      authType: 'password',
      authUrl: 'https://k:5000/v3',
      username: 'u',
      password: '12345',
      projectName: 'p',
      userDomainName: 'Default',
      projectDomainId: 'default',
      regionName: 'R1',
      validInterfaces: ['internal'],
      tls: { insecure: true, caFile: '/ca.pem' },
      endpointOverrides: { compute: 'http://nova' },
    });
  });

  it('takes the first file of: the given one, OS_CLIENT_CONFIG_FILE, here, home, system', () => {
    write(join(places.system, 'clouds.yaml'), cloud('system'));
    const user = (): string | undefined => loadCloud('c', places).username;
    expect(user()).toBe('system');
    write(join(places.home, '.config', 'openstack', 'clouds.yml'), cloud('home'));
    expect(user()).toBe('home');
    write(join(places.cwd, 'clouds.yaml'), cloud('here'));
    expect(user()).toBe('here');
    const named = write(join(root, 'other.yaml'), cloud('named'));
    expect(loadCloud('c', { ...places, env: { OS_CLIENT_CONFIG_FILE: named } }).username).toBe('named');
    const given = write(join(root, 'given.yaml'), cloud('given'));
    expect(loadCloud('c', { ...places, env: { OS_CLIENT_CONFIG_FILE: named }, file: given }).username).toBe('given');
  });

  it('lays secure.yaml over it, and both over the profile', () => {
    write(
      join(places.system, 'clouds-public.yaml'),
      'public-clouds: {vendor: {auth: {auth_url: "http://vendor", username: x}, region_name: V}}',
    );
    write(join(places.cwd, 'clouds.yaml'), 'clouds: {c: {profile: vendor, auth: {username: u}}}');
    write(join(places.home, '.config', 'openstack', 'secure.yaml'), 'clouds: {c: {auth: {password: s3cret}}}');
    expect(loadCloud('c', places)).toMatchObject({
      authUrl: 'http://vendor',
      username: 'u',
      password: 's3cret',
      regionName: 'V',
    });
  });

  it('finds secure.yaml and clouds-public.yaml beside the clouds.yaml that is named', () => {
    const file = write(join(root, 'clouds.yaml'), 'clouds: {c: {profile: vendor, auth: {username: u}}}');
    write(join(root, 'secure.yaml'), 'clouds: {c: {auth: {password: beside}}}');
    write(join(root, 'clouds-public.yaml'), 'public-clouds: {vendor: {auth: {auth_url: "http://vendor"}}}');
    write(join(places.cwd, 'secure.yaml'), 'clouds: {c: {auth: {password: elsewhere}}}');
    expect(loadCloud('c', { ...places, file })).toMatchObject({ authUrl: 'http://vendor', password: 'beside' });
  });

  it('uses the region that is asked for, with what the list of regions says about it', () => {
    const auth = 'auth: {auth_url: "http://k", username: u, password: p}';
    const regions = '[A, {name: B, values: {interface: internal, auth: {project_name: of-b}}}]';
    write(
      join(places.cwd, 'clouds.yaml'),
      `clouds: {c: {${auth}, regions: ${regions}}, one: {${auth}, regions: [A]}, own: {${auth}, region_name: X}}`,
    );
    expect(loadCloud('c', { ...places, region: 'B' })).toMatchObject({
      regionName: 'B',
      projectName: 'of-b',
      validInterfaces: ['internal'],
    });
    expect(loadCloud('c', { ...places, region: 'A' })).toMatchObject({ regionName: 'A', validInterfaces: ['public'] });
    expect(loadCloud('one', places).regionName).toBe('A');
    expect(loadCloud('own', places).regionName).toBe('X');
    expect(loadCloud('own', { ...places, region: 'Y' }).regionName).toBe('Y');
    expect(() => loadCloud('c', places)).toThrow(/clouds\.c\.regions has A, B: name the region to use/);
    expect(() => loadCloud('c', { ...places, region: 'C' })).toThrow(/clouds\.c\.regions has A, B, and not C/);
  });

  it('knows an application credential by its secret', () => {
    write(
      join(places.cwd, 'clouds.yaml'),
      'clouds: {c: {auth: {auth_url: "http://k", application_credential_id: a, application_credential_secret: s}}}',
    );
    expect(loadCloud('c', places)).toMatchObject({ authType: 'v3applicationcredential', applicationCredentialId: 'a' });
  });

  it('says where it searched when there is no file', () => {
    expect(() => loadCloud('c', places)).toThrow(
      new RegExp(`no clouds.yaml for cloud "c"; searched ${places.cwd}.*${places.system}`),
    );
  });

  it('says which clouds a file has', () => {
    write(join(places.cwd, 'clouds.yaml'), 'clouds: {b: {}, a: {}}');
    expect(() => loadCloud('c', places)).toThrow(/has no cloud "c"; it has a, b/);
    expect(cloudNames(join(places.cwd, 'clouds.yaml'))).toEqual(['a', 'b']);
  });

  it.each([
    ['clouds: {c: {auth: {username: u}}}', 'clouds.c.auth.auth_url is missing'],
    ['clouds: {c: {auth: [1]}}', 'clouds.c.auth'],
    ['clouds: {c: {profile: nobody}}', 'has profile "nobody"'],
    ['clouds: [1]', 'clouds is not a mapping'],
    [
      'clouds: {c: {auth: {auth_url: "http://k", verify: false}}}',
      'clouds.c.auth.verify: it belongs beside auth, not in it: write clouds.c.verify',
    ],
    ['clouds: {c: {ca_cert: a.pem, auth: {auth_url: "http://k"}}}', 'clouds.c.ca_cert: it has no effect; write cacert'],
    ['clouds: {c: {verfy: false, auth: {auth_url: "http://k"}}}', 'clouds.c.verfy: it has no effect; write verify'],
    ['clouds: {c: {interfaces: internal, auth: {auth_url: "http://k"}}}', 'write interface'],
  ])('names what is wrong in %s', (text, problem) => {
    write(join(places.cwd, 'clouds.yaml'), text);
    expect(() => loadCloud('c', places)).toThrow(BadAuthOptions);
    expect(() => loadCloud('c', places)).toThrow(problem);
  });

  it('takes keys of openstacksdk that Kronos does not read', () => {
    write(
      join(places.cwd, 'clouds.yaml'),
      'clouds: {c: {regions: [a], volume_api_version: 3, networks: [], auth: {auth_url: "http://k"}}}',
    );
    expect(loadCloud('c', places).authUrl).toBe('http://k');
  });

  it('never shows the text of a file that is not YAML, which may hold a password', () => {
    write(join(places.cwd, 'clouds.yaml'), 'clouds:\n  c: {auth: {password: "s3cret}}\n');
    let text = '';
    try {
      loadCloud('c', places);
    } catch (error) {
      text = String(error) + (error instanceof Error ? String(error.cause) : '');
    }
    expect(text).toMatch(/clouds.yaml cannot be read as YAML \(line \d+\)/);
    expect(text).not.toContain('s3cret');
  });
});
