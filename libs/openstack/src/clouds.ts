import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import type { AuthOptions } from './auth.ts';
import { BadAuthOptions } from './errors.ts';

const text = z.union([z.string(), z.number()]).transform(String);
const cloudSchema = z.object({
  profile: z.string().optional(),
  auth_type: z.string().optional(),
  auth: z.record(z.string(), text.nullish()).optional(),
  region_name: text.nullish(),
  interface: text.nullish(),
  endpoint_type: text.nullish(),
  verify: z.boolean().nullish(),
  insecure: z.boolean().nullish(),
  cacert: text.nullish(),
  cert: text.nullish(),
  key: text.nullish(),
});
const fileSchema = z.object({ clouds: z.record(z.string(), z.unknown()).nullish() });
const publicFileSchema = z.object({ 'public-clouds': z.record(z.string(), z.unknown()).nullish() });

export interface CloudsPlaces {
  /** This clouds.yaml and no other. */
  readonly file?: string | undefined;
  /** Environment, for `OS_CLIENT_CONFIG_FILE` and `OS_CLIENT_SECURE_FILE`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly home?: string;
  /** The system's directory, `/etc/openstack`. */
  readonly system?: string;
  /** The region to use, in place of the cloud's own. */
  readonly region?: string | undefined;
}

/** Finds files as openstacksdk does. */
function finder(places: CloudsPlaces) {
  const env = places.env ?? process.env;
  const directories = [
    places.cwd ?? process.cwd(),
    join(places.home ?? homedir(), '.config', 'openstack'),
    places.system ?? '/etc/openstack',
  ];
  const find = (base: string, variable?: string, first: readonly string[] = []): string | undefined => {
    const given = variable === undefined ? undefined : env[variable];
    const files = [...first, ...directories].flatMap((directory) =>
      ['yaml', 'yml', 'json'].map((end) => join(directory, `${base}.${end}`)),
    );
    return [...(given === undefined ? [] : [given]), ...files].find((file) => existsSync(file));
  };
  return { directories, find };
}

/** The clouds.yaml that {@link loadCloud} reads; undefined: there is none. */
export const cloudsFile = (places: CloudsPlaces): string | undefined =>
  places.file ?? finder(places).find('clouds', 'OS_CLIENT_CONFIG_FILE');

/** The names of the clouds in a clouds.yaml, sorted. @throws BadAuthOptions when it is not understood */
export const cloudNames = (file: string): string[] => Object.keys(readYaml(file, fileSchema).clouds ?? {}).sort();

/**
 * The authentication options of one cloud of clouds.yaml, as openstacksdk finds them: the first clouds.yaml of
 * `$OS_CLIENT_CONFIG_FILE`, the working directory, `~/.config/openstack` and `/etc/openstack`, the first secure.yaml laid over it, on
 * top of the cloud's `profile` from clouds-public.yaml. Both are also looked for beside the clouds.yaml, and first there: a service has
 * another home than the person who named the file.
 *
 * @throws BadAuthOptions when no file is found, the cloud or the region is not in it, or it is not understood.
 */
export function loadCloud(name: string, places: CloudsPlaces): AuthOptions {
  const env = places.env ?? process.env;
  const { directories, find } = finder(places);
  const file = cloudsFile(places);
  if (file === undefined) {
    const given = env.OS_CLIENT_CONFIG_FILE;
    const searched = [...(given === undefined ? [] : [given]), ...directories.map((d) => join(d, 'clouds.yaml'))];
    throw new BadAuthOptions(
      'cloud',
      `no clouds.yaml for cloud "${name}"; searched ${searched.join(', ')}: write one, or name it with [nova] clouds_file or OS_CLIENT_CONFIG_FILE`,
    );
  }
  const clouds = readYaml(file, fileSchema).clouds ?? {};
  if (clouds[name] === undefined) {
    const has = cloudNames(file).join(', ');
    throw new BadAuthOptions('cloud', `${file} has no cloud "${name}"; it has ${has === '' ? 'none' : has}`);
  }
  const beside = [dirname(file)];
  const secureFile = find('secure', 'OS_CLIENT_SECURE_FILE', beside);
  const secure = secureFile === undefined ? {} : (readYaml(secureFile, fileSchema).clouds ?? {});
  const own = merge(clouds[name], secure[name]);
  const publicFile = (): string | undefined => find('clouds-public', undefined, beside);
  return toAuth(file, name, inRegion(file, name, onProfile(file, name, own, publicFile), places.region));
}

/** The cloud laid over the profile that it names. */
function onProfile(file: string, name: string, own: unknown, findPublic: () => string | undefined): unknown {
  if (!isRecord(own) || typeof own.profile !== 'string') return own;
  const { profile } = own;
  const publicFile = findPublic();
  const profiles = publicFile === undefined ? {} : (readYaml(publicFile, publicFileSchema)['public-clouds'] ?? {});
  if (profiles[profile] === undefined)
    throw new BadAuthOptions(
      'cloud',
      `${file}: cloud "${name}" has profile "${profile}", which no clouds-public.yaml has`,
    );
  return merge(profiles[profile], own);
}

const regionsSchema = z.array(
  z.union([text, z.object({ name: text, values: z.record(z.string(), z.unknown()).nullish() })]),
);

/** The cloud with what its list of regions says about the region in use: the one that is asked for, `region_name`, or the only one. */
function inRegion(file: string, name: string, cloud: unknown, asked: string | undefined): unknown {
  if (!isRecord(cloud)) return cloud;
  const wanted = asked ?? (typeof cloud.region_name === 'string' ? cloud.region_name : undefined);
  if (cloud.regions === undefined || cloud.regions === null)
    return wanted === undefined ? cloud : { ...cloud, region_name: wanted };
  const wrong = (what: string): BadAuthOptions =>
    new BadAuthOptions('cloud', `${file}: clouds.${name}.regions ${what}`);
  const parsed = regionsSchema.safeParse(cloud.regions);
  if (!parsed.success) throw wrong('is no list of names, or of mappings with name and values');
  const regions = parsed.data.map((region) => (typeof region === 'string' ? { name: region, values: {} } : region));
  const names = regions.map((region) => region.name).join(', ');
  if (wanted === undefined && regions.length !== 1)
    throw wrong(
      `has ${names === '' ? 'none' : names}: name the region to use as [nova] region_name, or as its region_name`,
    );
  const region = wanted === undefined ? regions[0] : regions.find((each) => each.name === wanted);
  if (region === undefined) throw wrong(`has ${names}, and not ${wanted ?? ''}`);
  return { ...(merge(cloud, region.values) as Record<string, unknown>), region_name: region.name };
}

/** Keys beside `auth` that decide how the cloud is reached, and what people write in their place. */
const CONNECTION_KEYS = ['region_name', 'interface', 'verify', 'insecure', 'cacert', 'cert', 'key'] as const;
const KEYS: readonly string[] = ['profile', 'auth_type', 'auth', 'endpoint_type', ...CONNECTION_KEYS];
const ALIASES: Readonly<Record<string, string>> = {
  cafile: 'cacert',
  ca_file: 'cacert',
  cabundle: 'cacert',
  ssl_verify: 'verify',
  verify_ssl: 'verify',
  region: 'region_name',
};
/** Keys of openstacksdk that look like a misspelt one. */
const OTHER_KEYS: ReadonlySet<string> = new Set(['regions']);

/** A key that is misspelt, or stands in the wrong place: without an error it would have no effect. @throws BadAuthOptions */
function checkKeys(file: string, name: string, cloud: unknown): void {
  if (!isRecord(cloud)) return;
  const wrong = (key: string, remedy: string): never => {
    throw new BadAuthOptions('cloud', `${file}: clouds.${name}.${key}: ${remedy}`);
  };
  for (const key of Object.keys(isRecord(cloud.auth) ? cloud.auth : {}))
    if (CONNECTION_KEYS.some((one) => one === key))
      wrong(`auth.${key}`, `it belongs beside auth, not in it: write clouds.${name}.${key}`);
  for (const key of Object.keys(cloud)) {
    if (KEYS.includes(key) || OTHER_KEYS.has(key)) continue;
    const meant = ALIASES[key] ?? KEYS.find((one) => one.length > 3 && differsByOne(one, key));
    if (meant !== undefined) wrong(key, `it has no effect; write ${meant}`);
  }
}

/** One character is missing, added or another one, or two neighbours are exchanged. */
function differsByOne(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false;
  let i = 0;
  while (i < a.length && a[i] === b[i]) i += 1;
  const rest = (text: string, from: number): string => text.slice(from);
  return (
    rest(a, i + 1) === rest(b, i + 1) ||
    rest(a, i + 1) === rest(b, i) ||
    rest(a, i) === rest(b, i + 1) ||
    (a[i] === b[i + 1] && a[i + 1] === b[i] && rest(a, i + 2) === rest(b, i + 2))
  );
}

function toAuth(file: string, name: string, merged: unknown): AuthOptions {
  checkKeys(file, name, merged);
  const parsed = cloudSchema.safeParse(merged);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new BadAuthOptions(
      'cloud',
      `${file}: clouds.${name}.${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'unreadable'}`,
    );
  }
  const cloud = parsed.data;
  const auth = (field: string): string | undefined => cloud.auth?.[field] ?? undefined;
  const authUrl = auth('auth_url');
  if (authUrl === undefined) throw new BadAuthOptions('cloud', `${file}: clouds.${name}.auth.auth_url is missing`);
  const interfaces = cloud.interface ?? cloud.endpoint_type ?? 'public';
  return {
    authType:
      cloud.auth_type ?? (auth('application_credential_secret') === undefined ? 'password' : 'v3applicationcredential'),
    authUrl,
    username: auth('username'),
    userId: auth('user_id'),
    password: auth('password'),
    userDomainName: auth('user_domain_name'),
    userDomainId: auth('user_domain_id'),
    projectName: auth('project_name') ?? auth('tenant_name'),
    projectId: auth('project_id') ?? auth('tenant_id'),
    projectDomainName: auth('project_domain_name'),
    projectDomainId: auth('project_domain_id'),
    domainName: auth('domain_name'),
    domainId: auth('domain_id'),
    systemScope: auth('system_scope'),
    defaultDomainName: auth('default_domain_name'),
    defaultDomainId: auth('default_domain_id') ?? auth('default_domain'),
    applicationCredentialId: auth('application_credential_id'),
    applicationCredentialName: auth('application_credential_name'),
    applicationCredentialSecret: auth('application_credential_secret'),
    token: auth('token'),
    regionName: cloud.region_name ?? undefined,
    validInterfaces: interfaces.split(',').map((one) => one.trim()),
    endpointOverrides: overridesOf(merged),
    tls: tlsOf(cloud),
  };
}

const tlsOf = (cloud: z.infer<typeof cloudSchema>): AuthOptions['tls'] => ({
  caFile: cloud.cacert ?? undefined,
  insecure: cloud.verify === false || cloud.insecure === true,
  certFile: cloud.cert ?? undefined,
  keyFile: cloud.key ?? undefined,
});

/** The keys `SERVICE_endpoint` and `SERVICE_endpoint_override`, by service type. */
function overridesOf(cloud: unknown): Record<string, string> {
  const overrides: Record<string, string> = {};
  for (const [key, value] of Object.entries(isRecord(cloud) ? cloud : {})) {
    const service = /^(.+)_endpoint(?:_override)?$/.exec(key)?.[1];
    if (service !== undefined && typeof value === 'string') overrides[service.replaceAll('_', '-')] = value;
  }
  return overrides;
}

function readYaml<S extends z.ZodType>(file: string, schema: S): z.infer<S> {
  let content: unknown;
  try {
    content = parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    // The parser's own message quotes the file, which may hold a password.
    const at =
      isRecord(cause) && Array.isArray(cause.linePos) && isRecord(cause.linePos[0]) ? cause.linePos[0].line : undefined;
    throw new BadAuthOptions(
      'cloud',
      `${file} cannot be read as YAML${at === undefined ? '' : ` (line ${String(at)})`}`,
    );
  }
  const parsed = schema.safeParse(content ?? {});
  if (parsed.success) return parsed.data;
  throw new BadAuthOptions('cloud', `${file}: ${parsed.error.issues[0]?.path.join('.') ?? ''} is not a mapping`);
}

/** `over` laid on `base`, mappings merged field by field. */
function merge(base: unknown, over: unknown): unknown {
  if (over === undefined || over === null) return base;
  if (!isRecord(base) || !isRecord(over)) return over;
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) merged[key] = merge(base[key], value);
  return merged;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
