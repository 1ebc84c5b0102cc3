import type { Config } from '@kronos/config';
import {
  connectEventLog,
  type EventLog,
  type EventLogHooks,
  inboxPrefixOf,
  type NatsOptions,
  natsWire,
  type Wrap,
} from '@kronos/eventlog';
import type { Check, Logger } from '@kronos/telemetry';
import type { Instrumentation, ServiceLog } from './instrumented.ts';
import { scrubbed } from './scrubbed.ts';

/** Names under which commands connect: a person waits for their answer. Services wait for the servers for a while. */
const COMMANDS: readonly string[] = ['cli', 'provisioner'];

/** The user of a `kronos` command that names none, such as one that logs in with an nkey. */
const USUAL_USER = 'operator';

/** The inbox prefix. Each user of deploy/nats may subscribe only below a prefix with its own name. */
function inboxPrefix({ nats }: Config, name: string): string {
  if (nats.inboxPrefix !== null) return nats.inboxPrefix;
  return inboxPrefixOf(name === 'cli' ? (nats.user ?? USUAL_USER) : name);
}

/** The `[nats]` section as the event log's options. `name` is the service: it names the connection and its inboxes. */
function natsOptions(config: Config, name: string): NatsOptions {
  const { nats } = config;
  const tls = nats.tlsCa !== null || nats.tlsCert !== null || nats.tlsHandshakeFirst;
  return {
    servers: nats.servers,
    name,
    inboxPrefix: inboxPrefix(config, name),
    ...(COMMANDS.includes(name)
      ? { connectOnce: true, connectTimeoutMs: 3_000, readPatienceMs: nats.requestTimeout * 1000 }
      : {}),
    replicas: nats.replicas,
    requestTimeoutMs: nats.requestTimeout * 1000,
    ...(nats.user === null ? {} : { user: nats.user }),
    ...(nats.password === null ? {} : { password: nats.password.reveal() }),
    ...(nats.nkeySeedFile === null ? {} : { nkeySeedFile: nats.nkeySeedFile }),
    ...(nats.credentialsFile === null ? {} : { credentialsFile: nats.credentialsFile }),
    ...(tls
      ? {
          tls: {
            handshakeFirst: nats.tlsHandshakeFirst,
            ...(nats.tlsCa === null ? {} : { caFile: nats.tlsCa }),
            ...(nats.tlsCert === null ? {} : { certFile: nats.tlsCert }),
            ...(nats.tlsKey === null ? {} : { keyFile: nats.tlsKey }),
          },
        }
      : {}),
  };
}

/** The configuration with which the console writes commands, or skips: under the NATS users of `[console]`. */
export function consoleConfig(config: Config, as: 'console' | 'custodian'): Config {
  const { console: own } = config;
  const user = as === 'console' ? 'nats' : 'custodian';
  const login = {
    user: own[`${user}User` as const],
    password: own[`${user}Password` as const],
    nkeySeedFile: own[`${user}NkeySeedFile` as const],
    credentialsFile: own[`${user}CredentialsFile` as const],
  };
  return { ...config, nats: { ...config.nats, ...login, inboxPrefix: null } };
}

/** The health of a part of the event log, as a readiness check. */
export const healthCheck = ({ ok, detail }: { readonly ok: boolean; readonly detail: string }): Check =>
  ok ? { ok } : { ok, reason: detail };

/** Logs the events of the connection. */
const hooksOf = (logger: Logger): EventLogHooks => ({
  onStatus: ({ type, detail }) => {
    const level = type === 'connected' || type === 'reconnected' ? 'info' : 'warn';
    logger[level]({ component: 'nats', status: type, detail }, `NATS: ${type}`);
  },
  onWarning: (warning) => logger.warn({ component: 'eventlog', reason: warning }, warning.text),
});

/** Opens the event log with its seams decorated. */
export type Connect = (options: NatsOptions, hooks: EventLogHooks, wrap: Wrap) => Promise<EventLog>;

const overTcp: Connect = (options, hooks, wrap) => connectEventLog(options, hooks, natsWire, wrap);

/**
 * Connects to the NATS of the configuration, and stays connected for ever. With instrumentation, what is written is counted
 * and traced. Without a logger, changes of the connection are not reported.
 *
 * @param instrumentation its `connect` is over TCP unless given
 * @throws NatsUnreachable, NatsRefused, ServerTooOld on the first connection.
 */
export async function connectLog(config: Config, name: string, logger: Logger | null): Promise<EventLog>;
export async function connectLog(
  config: Config,
  name: string,
  logger: Logger,
  instrumentation: Instrumentation & { readonly connect?: Connect },
): Promise<ServiceLog>;
export async function connectLog(
  config: Config,
  name: string,
  logger: Logger | null,
  instrumentation?: Instrumentation & { readonly connect?: Connect },
): Promise<EventLog> {
  const { connect = overTcp } = instrumentation ?? {};
  const options = natsOptions(config, name);
  const hooks = logger === null ? {} : hooksOf(logger);
  if (instrumentation === undefined) return await connect(options, hooks, scrubbed);
  // Loaded here: commands start without the libraries for traces and metrics.
  const { instrumented } = await import('./instrumented.ts');
  const { wrap, refused } = instrumented(instrumentation);
  // The log itself and no copy: it has every method that the event log has.
  return Object.assign(await connect(options, hooks, wrapped(scrubbed, wrap)), { refused });
}

/** The seams within `inner`, within `outer`. */
const wrapped =
  (outer: Wrap, inner: Wrap): Wrap =>
  (seams, log) =>
    outer(inner(seams, log), log);
