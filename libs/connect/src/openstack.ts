import type { Clock } from '@kronos/clock';
import { type Config, learnSecret } from '@kronos/config';
import { CallsInProgress, type Transport } from '@kronos/http';
import {
  type AuthOptions,
  createIdentity,
  createNeutron,
  createNova,
  createPlacement,
  createSession,
  type Identity,
  loadCloud,
  type Neutron,
  type Nova,
  type Placement,
  type Session,
} from '@kronos/openstack';
import type { Instruments } from '@kronos/telemetry';
import { callHooks } from './calls.ts';

/** Nova, Placement and Neutron, under one session with Keystone. */
export type OpenStackCloud = {
  readonly session: Session;
  readonly nova: Nova;
  readonly placement: Placement;
  readonly neutron: Neutron;
  /** The calls that are under way. */
  readonly calls: CallsInProgress;
  readonly close: () => Promise<void>;
};

/** Clock and transport of the calls. */
export type HttpMeans = {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly transport?: Transport;
};

const given = <T>(value: T | null): T | undefined => value ?? undefined;

/** The `[nova]` section as Keystone's options; `cloud` takes the place of the authentication options. */
export function authOptions(config: Config, env: Readonly<Record<string, string | undefined>>): AuthOptions {
  const { nova } = config;
  const endpointOverrides = {
    ...(nova.endpointOverride === null ? {} : { compute: nova.endpointOverride }),
    ...(nova.placementEndpointOverride === null ? {} : { placement: nova.placementEndpointOverride }),
  };
  if (nova.cloud !== null) {
    const cloud = loadCloud(nova.cloud, { env, file: given(nova.cloudsFile), region: given(nova.regionName) });
    for (const secret of [cloud.password, cloud.token, cloud.applicationCredentialSecret])
      if (secret !== undefined) learnSecret(secret);
    return { ...cloud, endpointOverrides: { ...cloud.endpointOverrides, ...endpointOverrides } };
  }
  return {
    authType: nova.authType,
    authUrl: nova.authUrl ?? '',
    username: given(nova.username),
    userId: given(nova.userId),
    password: nova.password?.reveal(),
    userDomainName: given(nova.userDomainName),
    userDomainId: given(nova.userDomainId),
    projectName: given(nova.projectName),
    projectId: given(nova.projectId),
    projectDomainName: given(nova.projectDomainName),
    projectDomainId: given(nova.projectDomainId),
    applicationCredentialId: given(nova.applicationCredentialId),
    applicationCredentialName: given(nova.applicationCredentialName),
    applicationCredentialSecret: nova.applicationCredentialSecret?.reveal(),
    token: nova.token?.reveal(),
    regionName: given(nova.regionName),
    validInterfaces: nova.validInterfaces,
    endpointOverrides,
    tls: {
      caFile: given(nova.cafile),
      certFile: given(nova.certfile),
      keyFile: given(nova.keyfile),
      insecure: nova.insecure,
    },
  };
}

/**
 * The clients of the `[nova]` section. Nothing is asked yet: the first call authenticates.
 *
 * @param metrics counts the calls; absent for commands, which count nothing.
 * @param means default: the machine's clock, and HTTP
 * @throws BadAuthOptions
 */
export function openCloud(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  metrics?: Instruments,
  means: HttpMeans = {},
): OpenStackCloud {
  const { nova: options } = config;
  const calls = new CallsInProgress();
  const session = createSession({
    auth: authOptions(config, env),
    inProgress: calls,
    limits: { headersMs: options.timeout * 1000, bodyMs: options.timeout * 1000 },
    retry: {
      connection: { retries: options.connectRetries, backoffMs: options.connectRetryDelay * 1000 },
      status: { retries: options.statusCodeRetries, backoffMs: options.statusCodeRetryDelay * 1000 },
    },
    ...callHooks(metrics),
    ...means,
  });
  return {
    session,
    nova: createNova(session, { pageSize: options.pageSize }),
    placement: createPlacement(session),
    neutron: createNeutron(session),
    calls,
    close: () => session.close(),
  };
}

/** Keystone of the `[console]` section, where people log in. */
export function openIdentity({ console: own }: Config, metrics: Instruments): Identity {
  return createIdentity(own.authUrl ?? '', {
    ...callHooks(metrics),
    tls: { caFile: given(own.cafile), insecure: own.insecure },
    // A person waits for the answer.
    limits: { connectMs: 3_000, headersMs: 8_000, bodyMs: 8_000, totalMs: 15_000 },
  });
}
