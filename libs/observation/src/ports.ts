/** The kinds of the ports of servers: Nova unplugs some of them for a live migration. */
import type { Clock } from '@kronos/clock';
import { some } from '@kronos/contracts';
import type { Neutron, Port, Server } from '@kronos/openstack';
import type { PortsSeen, ReadOptions } from './cloud.ts';
import { fetched } from './collect.ts';
import { note } from './reasons.ts';
import type { ServerIndex } from './servers.ts';

/** Time for which a list of all ports is used. The kind of a port does not change; ports may be attached meanwhile. */
const KEPT_MS = 3_600_000;
/** Without a newer list, this one counts so long. */
const VALID_MS = 2 * KEPT_MS;
/** New servers whose ports are read in a cycle; the rest wait for the next one. */
const MOST_READ = 500;

export interface PortReaderDeps {
  readonly neutron: Neutron;
  /** `[nova] sriov_ports`. */
  readonly mode: ReadOptions['sriovPorts'];
  readonly clock: Pick<Clock, 'monotonic'>;
}

type Index = Pick<ServerIndex, 'placed'>;
type Kind = Pick<Port, 'serverId' | 'vnicType'>;

export class PortReader {
  readonly #deps: PortReaderDeps;
  /** By id of the server, the kinds of its ports that are not ordinary. */
  readonly #kinds = new Map<string, readonly string[]>();
  readonly #readings = new WeakMap<Index, Promise<PortsSeen>>();
  /** When all ports were last read, by the clock's `monotonic`; null: never. */
  #shownAt: number | null = null;
  /** Why they could not be read later than that. `absent`: the cloud has no network service. */
  #failure: { readonly at: number; readonly text: string; readonly absent: boolean } | null = null;

  constructor(deps: PortReaderDeps) {
    this.#deps = deps;
  }

  /**
   * The ports of all servers, once for each index.
   *
   * @throws the signal's reason when it aborts; nothing else.
   */
  read(index: Index, signal: AbortSignal): Promise<PortsSeen> {
    const known = this.#readings.get(index) ?? this.#read(index, signal);
    this.#readings.set(index, known);
    return known;
  }

  async #read({ placed }: Index, signal: AbortSignal): Promise<PortsSeen> {
    const { mode, clock } = this.#deps;
    if (mode === 'ignore') return { kinds: null, notes: [] };
    const servers = [...placed.values()].map(({ server }) => server);
    if (this.#due()) await this.#listAll(servers, signal);
    const text = this.#failure?.text ?? '';
    if (this.#failure?.absent === true) return { kinds: null, notes: [] };
    if (this.#shownAt === null || clock.monotonic() - this.#shownAt >= VALID_MS)
      return mode === 'read' || this.#shownAt !== null
        ? { kinds: new Map(), notes: [note('ports-unread', `the ports of VMs are not known, so no VM moves: ${text}`)] }
        : { kinds: null, notes: [note('ports-unseen', `SR-IOV ports of VMs are not seen: ${text}`)] };
    for (const id of this.#kinds.keys()) if (!placed.has(id)) this.#kinds.delete(id);
    const failed = await this.#addNew(servers, signal);
    const kinds = new Map(servers.map(({ id }) => [id, this.#kinds.get(id) ?? null]));
    const unknown = servers.filter(({ id }) => kinds.get(id) === null).map(({ id }) => id);
    const why = failed ?? 'Neutron shows none, and they have addresses';
    const unread = `the ports of ${some(unknown)} are not known, so they stay where they are: ${why}`;
    return { kinds, notes: unknown.length === 0 ? [] : [note('ports-unread', unread, { servers: unknown.length })] };
  }

  /** Where nothing was ever shown and nothing depends on it, nobody asks in every cycle. */
  #due(): boolean {
    const now = this.#deps.clock.monotonic();
    if (this.#shownAt !== null) return now - this.#shownAt >= KEPT_MS;
    return this.#failure === null || this.#deps.mode === 'read' || now - this.#failure.at >= KEPT_MS;
  }

  async #listAll(servers: readonly Server[], signal: AbortSignal): Promise<void> {
    const read = await fetched(() => this.#deps.neutron.listPortKinds({ signal }), signal);
    const at = this.#deps.clock.monotonic();
    const text = read.ok ? hidden(servers, read.value) : read.text;
    if (!read.ok || text !== null) {
      const absent = !read.ok && read.code === 'KRONOS_OPENSTACK_ENDPOINT_NOT_FOUND';
      this.#failure = { at, text: text ?? '', absent };
      // This user may not see them any more, which is not an outage.
      if (read.ok) this.#shownAt = null;
      return;
    }
    this.#failure = null;
    this.#shownAt = at;
    this.#kinds.clear();
    this.#keep(servers, read.value);
  }

  /** @returns why the ports of servers that are new could not be read; null: they were, or there are none */
  async #addNew(servers: readonly Server[], signal: AbortSignal): Promise<string | null> {
    const added = servers.filter(({ id }) => !this.#kinds.has(id)).slice(0, MOST_READ);
    if (added.length === 0) return null;
    const ids = added.map(({ id }) => id);
    const read = await fetched(() => this.#deps.neutron.listPorts(ids, { signal }), signal);
    if (!read.ok) return read.text;
    this.#keep(added, read.value);
    return null;
  }

  /** Servers with addresses and without a port stay unknown: their ports were not shown. */
  #keep(servers: readonly Server[], ports: readonly Kind[]): void {
    const of = Map.groupBy(ports, ({ serverId }) => serverId);
    for (const { id, addresses } of servers) {
      const own = of.get(id) ?? [];
      if (own.length === 0 && addresses.length > 0) continue;
      const kinds = new Set(own.map(({ vnicType }) => vnicType));
      kinds.delete('normal');
      this.#kinds.set(id, [...kinds].sort());
    }
  }
}

/**
 * Whether ports of other projects are missing: Neutron leaves them out without a word for a user who may not see them. Such a user sees the
 * ports of one project at most.
 *
 * @returns why, as a sentence; null: all ports are there
 */
function hidden(servers: readonly Server[], ports: readonly Kind[]): string | null {
  const shown = new Set(ports.map(({ serverId }) => serverId));
  const seen = new Set(servers.flatMap(({ id, projectId }) => (shown.has(id) ? [projectId] : [])));
  const missing = servers.filter(
    ({ id, addresses, projectId }) => addresses.length > 0 && !shown.has(id) && !seen.has(projectId),
  );
  if (missing.length === 0 || seen.size > 1) return null;
  return `Neutron shows this user no ports of ${some([...new Set(missing.map(({ projectId }) => `project ${projectId}`))])}; give it a role that may read them`;
}
