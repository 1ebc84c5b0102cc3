/** The kinds of the ports of servers: Nova unplugs some of them for a live migration. */
import type { Clock } from '@kronos/clock';
import { byText, some } from '@kronos/contracts';
import type { Neutron, Port, Server } from '@kronos/openstack';
import type { PortsSeen, ReadOptions } from './cloud.ts';
import { fetched } from './collect.ts';
import { note } from './reasons.ts';
import type { ServerIndex } from './servers.ts';

/** Time for which a list of all ports is used. The kind of a port does not change; one without an address may be attached meanwhile. */
const KEPT_MS = 3_600_000;
/** With `auto`, after a first list that failed, they are read again after this time: nobody knows yet whether Neutron shows them. */
const AGAIN_MS = 600_000;
/** Time for which a list counts that no newer one has replaced. */
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
type Kind = Pick<Port, 'serverId' | 'vnicType' | 'mac'>;
/** The kinds of a server's ports that are not ordinary, and its addresses when they were read. */
type Known = { readonly kinds: readonly string[]; readonly addresses: string };

const addressesOf = ({ addresses, macs }: Server): string => [...addresses, ...macs].toSorted(byText).join(' ');
/** Nova attaches ports while it builds a server: what is there is not all. */
const isBuilt = ({ status }: Server): boolean => status !== 'BUILD';

export class PortReader {
  readonly #deps: PortReaderDeps;
  /** By id of the server. */
  readonly #known = new Map<string, Known>();
  readonly #readings = new WeakMap<Index, Promise<PortsSeen>>();
  /** When all ports were last read, by the clock's `monotonic`; null: never. */
  #shownAt: number | null = null;
  /** Why they could not be read later than that. `hidden`: Neutron answers, and shows too few. */
  #failure: { readonly at: number; readonly text: string; readonly hidden: boolean } | null = null;

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
    if (this.#shownAt === null || clock.monotonic() - this.#shownAt >= VALID_MS)
      return mode === 'read' || this.#shownAt !== null
        ? { kinds: new Map(), notes: [note('ports-unread', `the ports of VMs are not known, so no VM moves: ${text}`)] }
        : { kinds: null, notes: [note('ports-unseen', `SR-IOV ports of VMs are not seen: ${text}`)] };
    this.#forget(placed);
    const failed = await this.#addNew(servers, signal);
    const kinds = new Map(servers.map(({ id }) => [id, this.#known.get(id)?.kinds ?? null]));
    const unknown = servers.filter((server) => isBuilt(server) && kinds.get(server.id) === null).map(({ id }) => id);
    const why = failed ?? 'Neutron does not show all ports of their addresses';
    const unread = `the ports of ${some(unknown)} are not known, so they stay where they are: ${why}`;
    return { kinds, notes: unknown.length === 0 ? [] : [note('ports-unread', unread, { servers: unknown.length })] };
  }

  /** Drops servers that are gone, and those whose addresses are others: ports came or went. */
  #forget(placed: Index['placed']): void {
    for (const [id, { addresses }] of this.#known) {
      const server = placed.get(id)?.server;
      if (server === undefined || addressesOf(server) !== addresses) this.#known.delete(id);
    }
  }

  /** Where nothing was ever shown and nothing depends on it, nobody asks in every cycle. */
  #due(): boolean {
    const now = this.#deps.clock.monotonic();
    if (this.#shownAt !== null) return now - this.#shownAt >= KEPT_MS;
    if (this.#failure === null || this.#deps.mode === 'read') return true;
    return now - this.#failure.at >= (this.#failure.hidden ? KEPT_MS : AGAIN_MS);
  }

  async #listAll(servers: readonly Server[], signal: AbortSignal): Promise<void> {
    const read = await fetched(() => this.#deps.neutron.listPortKinds({ signal }), signal);
    const at = this.#deps.clock.monotonic();
    const text = read.ok ? hidden(servers, read.value) : read.text;
    if (!read.ok || text !== null) {
      this.#failure = { at, text: text ?? '', hidden: read.ok };
      // This user may not see them any more, which is not an outage.
      if (read.ok) this.#shownAt = null;
      return;
    }
    this.#failure = null;
    this.#shownAt = at;
    this.#known.clear();
    this.#keep(servers, read.value);
  }

  /** @returns why the ports of servers that are new could not be read; null: they were, or there are none */
  async #addNew(servers: readonly Server[], signal: AbortSignal): Promise<string | null> {
    const added = servers.filter((server) => isBuilt(server) && !this.#known.has(server.id)).slice(0, MOST_READ);
    if (added.length === 0) return null;
    const ids = added.map(({ id }) => id);
    const read = await fetched(() => this.#deps.neutron.listPorts(ids, { signal }), signal);
    if (!read.ok) return read.text;
    this.#keep(added, read.value);
    return null;
  }

  /** Servers whose ports were not all shown stay unknown, and so do those that Nova builds. */
  #keep(servers: readonly Server[], ports: readonly Kind[]): void {
    const of = Map.groupBy(ports, ({ serverId }) => serverId);
    for (const server of servers) {
      const own = of.get(server.id) ?? [];
      if (!isBuilt(server) || !areAllShown(server, own)) continue;
      const kinds = new Set(own.map(({ vnicType }) => vnicType));
      kinds.delete('normal');
      this.#known.set(server.id, { kinds: [...kinds].sort(), addresses: addressesOf(server) });
    }
  }
}

/**
 * Whether each address of the server belongs to a port that Neutron shows. The owner of a network that other projects use sees their ports
 * on it, and not those on their own networks.
 */
const areAllShown = ({ addresses, macs }: Server, own: readonly Kind[]): boolean =>
  (own.length > 0 || addresses.length === 0) && macs.every((mac) => own.some((port) => port.mac === mac));

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
