/** NUMA cells: those of servers from Nova, those of hosts from a file or from the exporter. Read only where servers need them. */
import type { Clock } from '@kronos/clock';
import { type HostCell, type Policy, type Reason, type ServerCell, some } from '@kronos/contracts';
import type { Nova, Server } from '@kronos/openstack';
import { type HostNames, matchHosts, type Prometheus, type Sample } from '@kronos/prometheus';
import { cellsOf, isHuge, needsCells } from '@kronos/rules';
import type { Capacity, CellsSeen, CloudLists } from './cloud.ts';
import { fetched } from './collect.ts';
import { createLimiter } from './limit.ts';
import { hostNamesOf } from './names.ts';
import { note } from './reasons.ts';
import type { ServerIndex } from './servers.ts';
import { type HostFacts, matchesAny } from './topology.ts';

export interface CellReaderDeps {
  readonly nova: Pick<Nova, 'getServerTopology'>;
  /** Null where nothing is asked of it. */
  readonly prometheus: Pick<Prometheus, 'instant'> | null;
  /** From the file; the first entry that fits counts. Null: from the exporter. */
  readonly file: readonly { readonly hosts: string; readonly cells: readonly HostCell[] }[] | null;
  /** Labels that may name a host in the exporter's series. */
  readonly labels: readonly string[];
  readonly concurrency: number;
  readonly clock: Pick<Clock, 'monotonic'>;
}

export interface HostCellsInput {
  readonly lists: Pick<CloudLists, 'hypervisors' | 'services'>;
  readonly index: Pick<ServerIndex, 'placed'>;
  readonly hosts: readonly HostFacts[];
  readonly capacity: Pick<Capacity, 'providers'>;
}

/** Servers whose cells are read in a cycle; the rest wait for the next one. */
const MOST_READ = 500;
/** Time for which the exporter's answer is used before it is asked again. */
const KEPT_MS = 600_000;

const SELECTORS = {
  memory: 'node_memory_numa_MemTotal',
  pages: 'node_memory_numa_HugePages_Total',
  pageSize: 'node_memory_Hugepagesize_bytes',
} as const;
type Exported = Readonly<Record<keyof typeof SELECTORS, readonly Sample[]>>;

/** Labels that may name a host in the series of the exporter: those of the policies, and those that exporters use. */
export const exporterLabels = (policies: readonly Pick<Policy, 'hostLabel'>[]): string[] => [
  ...new Set([...policies.map(({ hostLabel }) => hostLabel), 'instance', 'host', 'nodename']),
];

export class CellReader {
  readonly #deps: CellReaderDeps;
  readonly #limit: <T>(job: () => Promise<T>) => Promise<T>;
  /** By id, of servers that Nova lists. A server's cells change when it moves or is resized. */
  readonly #servers = new Map<string, { readonly at: string; readonly cells: readonly ServerCell[] | null }>();
  #exported: { readonly readAt: number; readonly answer: Exported } | null = null;

  constructor(deps: CellReaderDeps) {
    this.#deps = deps;
    this.#limit = createLimiter(deps.concurrency);
  }

  /** @throws the signal's reason when it aborts; nothing else. */
  async read(input: HostCellsInput, signal: AbortSignal): Promise<CellsSeen> {
    for (const id of this.#servers.keys()) if (!input.index.placed.has(id)) this.#servers.delete(id);
    const here = new Set(input.hosts.map(({ name }) => name));
    const wanting = [...input.index.placed.values()].flatMap(({ server, host, alsoOn }) =>
      [host, ...alsoOn].some((name) => here.has(name)) && needsCells(server) ? [server] : [],
    );
    if (wanting.length === 0) return { servers: new Map(), hosts: new Map(), notes: [] };
    const notes: Reason[] = [];
    const [ofServers, ofHosts] = await Promise.all([
      this.#ofServers(wanting, notes, signal),
      this.#ofHosts(input, notes, signal),
    ]);
    const unknown = [...ofHosts].flatMap(([name, cells]) => (cells === null ? [name] : []));
    if (unknown.length > 0)
      notes.push(
        note('host-cells-unknown', `the NUMA cells of ${some(unknown)} are unknown; ${wanting.length} VMs need cells`, {
          hosts: unknown,
          servers: wanting.length,
        }),
      );
    return { servers: ofServers, hosts: ofHosts, notes };
  }

  async #ofServers(wanting: readonly Server[], notes: Reason[], signal: AbortSignal): Promise<CellsSeen['servers']> {
    const { nova } = this.#deps;
    const stale = wanting.filter((server) => this.#servers.get(server.id)?.at !== placeOf(server));
    const failures = new Set<string>();
    await Promise.all(
      stale.slice(0, MOST_READ).map((server) =>
        this.#limit(async () => {
          // One refusal holds for all servers: it comes from a policy, or from a version of Nova without this call.
          if (failures.size > 0) return;
          const read = await fetched(() => nova.getServerTopology(server.id, { signal }), signal);
          if (read.ok) this.#servers.set(server.id, { at: placeOf(server), cells: cellsOf(read.value) });
          else if (read.code !== 'KRONOS_OPENSTACK_NOT_FOUND') failures.add(read.text);
        }),
      ),
    );
    if (failures.size > 0)
      notes.push(note('server-cells-unread', `Nova does not show the NUMA cells of VMs: ${some([...failures], 1)}`));
    return new Map(
      wanting.map((server) => {
        const known = this.#servers.get(server.id);
        return [server.id, known?.at === placeOf(server) ? known.cells : null];
      }),
    );
  }

  async #ofHosts(
    { lists, hosts, capacity }: HostCellsInput,
    notes: Reason[],
    signal: AbortSignal,
  ): Promise<CellsSeen['hosts']> {
    const { file, labels } = this.#deps;
    if (file !== null)
      return new Map(
        hosts.map(({ name }) => [name, file.find((entry) => matchesAny(entry.hosts, name))?.cells ?? null]),
      );
    const answer = await this.#ask(notes, signal);
    const exported =
      answer === null ? new Map<string, readonly ExportedCell[]>() : exportedCells(answer, labels, hostNamesOf(lists));
    return new Map(
      hosts.map(({ name, hypervisorId }) => {
        const cells = exported.get(name);
        return [name, cells === undefined ? null : withCpus(cells, capacity.providers.get(hypervisorId)?.inventory)];
      }),
    );
  }

  async #ask(notes: Reason[], signal: AbortSignal): Promise<Exported | null> {
    const { prometheus, clock } = this.#deps;
    const kept = this.#exported;
    if (kept !== null && clock.monotonic() - kept.readAt < KEPT_MS) return kept.answer;
    if (prometheus === null) return null;
    const read = await fetched(async () => {
      const ask = async (query: string): Promise<readonly Sample[]> => {
        const { samples, warnings } = await this.#limit(() => prometheus.instant(query, { signal }));
        if (warnings.length > 0) throw new Error(`Prometheus warns: ${some(warnings, 1)}`);
        return samples;
      };
      const { memory, pages, pageSize } = SELECTORS;
      return { memory: await ask(memory), pages: await ask(pages), pageSize: await ask(pageSize) };
    }, signal);
    if (!read.ok) {
      notes.push(note('host-cells-unread', `the exporter's NUMA metrics could not be read: ${read.text}`));
      return null;
    }
    this.#exported = { readAt: clock.monotonic(), answer: read.value };
    return read.value;
  }
}

/** Where a server is and what it has: its cells are others once this changes. */
const placeOf = ({ host, flavor, status, taskState }: Server): string =>
  JSON.stringify([host, flavor?.vcpus, flavor?.ramMb, flavor?.extraSpecs, status === 'MIGRATING' ? taskState : null]);

type ExportedCell = Omit<HostCell, 'dedicatedCpus' | 'sharedCpus'>;

/** By service host, the cells whose memory the exporter shows. Hosts with series that contradict each other are left out. */
function exportedCells(
  { memory, pages, pageSize }: Exported,
  labels: readonly string[],
  names: readonly HostNames[],
): Map<string, readonly ExportedCell[]> {
  const hostOf = hostBy(memory, labels, names);
  const values = (samples: readonly Sample[]): Map<string, number> => {
    const found = new Map<string, number>();
    for (const { labels: own, value } of samples) {
      const host = hostOf(own);
      if (host === null) continue;
      const key = `${host} ${own.node ?? ''}`;
      found.set(key, found.has(key) ? Number.NaN : value);
    }
    return found;
  };
  const [pagesOf, sizes] = [values(pages), values(pageSize)];
  const found = new Map<string, ExportedCell[]>();
  const bad = new Set<string>();
  for (const [key, bytes] of values(memory)) {
    const [host = '', node = ''] = key.split(' ');
    const total = pagesOf.get(key) ?? 0;
    const sizeKb = (sizes.get(`${host} `) ?? 0) / 1024;
    const readable = /^\d+$/.test(node) && Number.isFinite(bytes) && Number.isInteger(total);
    if (!readable || (total > 0 && !(isHuge(sizeKb) && Number.isInteger(sizeKb)))) bad.add(host);
    const cell = {
      id: Number(node),
      memoryMb: Math.floor(bytes / 1024 ** 2),
      pages: total > 0 ? [{ sizeKb, total }] : [],
    };
    found.set(
      host,
      [...(found.get(host) ?? []), cell].sort((a, b) => a.id - b.id),
    );
  }
  for (const host of bad) found.delete(host);
  return found;
}

/** The host of a series, by the label that names the most hosts. */
function hostBy(
  samples: readonly Sample[],
  labels: readonly string[],
  names: readonly HostNames[],
): (labels: Readonly<Record<string, string>>) => string | null {
  const matched = labels.map((label) => {
    const values = samples.flatMap((sample) => sample.labels[label] ?? []);
    return { label, byLabel: matchHosts(values, names).byLabel };
  });
  const best = matched.toSorted((a, b) => new Set(b.byLabel.values()).size - new Set(a.byLabel.values()).size)[0];
  return (own) => (best === undefined ? null : (best.byLabel.get(own[best.label] ?? '') ?? null));
}

/** No metric says which CPUs servers may pin: Placement's totals, spread evenly. Null where they cannot be. */
function withCpus(
  cells: readonly ExportedCell[],
  inventory: Readonly<Record<string, { readonly total?: number | undefined }>> | undefined,
): HostCell[] | null {
  if (inventory === undefined) return null;
  const each = (name: string): number => {
    const found = inventory[name];
    return found === undefined ? 0 : (found.total ?? Number.NaN) / cells.length;
  };
  const [dedicatedCpus, sharedCpus] = [each('PCPU'), each('VCPU')];
  if (!Number.isInteger(dedicatedCpus) || !Number.isInteger(sharedCpus)) return null;
  return cells.map((cell) => ({ ...cell, dedicatedCpus, sharedCpus }));
}
