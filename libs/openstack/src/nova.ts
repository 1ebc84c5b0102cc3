import type { VersionRange } from './microversion.ts';
import { type NovaActs, novaActs } from './novaActs.ts';
import { type NovaCloud, novaCloud } from './novaCloud.ts';
import { type NovaMigrations, novaMigrations } from './novaMigrations.ts';
import { type NovaServers, novaServers } from './novaServers.ts';
import { type CallOptions, createNovaTransport, type NOVA_CALLS, type NovaOptions } from './novaTransport.ts';
import type { Session } from './session.ts';

export interface Nova extends NovaCloud, NovaServers, NovaMigrations, NovaActs {
  /** The microversions that the cloud offers. */
  versions(options?: CallOptions): Promise<VersionRange>;
  /** The microversion that a call uses on this cloud. @throws MicroversionUnsupported */
  versionFor(call: keyof typeof NOVA_CALLS, options?: CallOptions): Promise<string>;
}

/** A client of Nova on a session. Its calls throw as {@link Session.call} says. */
export function createNova(session: Session, options: NovaOptions = {}): Nova {
  const transport = createNovaTransport(session, options);
  return {
    versions: ({ signal } = {}) => transport.versions(signal),
    versionFor: (call, { signal } = {}) => transport.versionFor(call, signal),
    ...novaCloud(transport),
    ...novaServers(transport),
    ...novaMigrations(transport),
    ...novaActs(transport),
  };
}
