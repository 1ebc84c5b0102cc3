/** The facts that a plan between cells needs beside the snapshot of its aggregate. */
import type { CellFacts, CellFlavor, CellsAsked, CellsReading, Reason, Snapshot } from '@kronos/contracts';
import type { Flavor, Neutron, Nova, Port, Server } from '@kronos/openstack';
import type { CloudLists } from './cloud.ts';
import { fetched } from './collect.ts';
import { note } from './reasons.ts';
import type { ServerIndex } from './servers.ts';

/** The `[cells]` settings that plans depend on. */
export interface CellsSettings extends Readonly<CellsReading['settings']> {
  /** Aggregate -> cell. */
  readonly map: Readonly<Record<string, string>>;
}

export interface CellReadsInput {
  readonly commandId: string;
  readonly asked: CellsAsked;
  readonly settings: CellsSettings;
  /** Of the aggregate that the servers leave. */
  readonly home: Snapshot;
  /** Of the other aggregates in scope. */
  readonly others: readonly Snapshot[];
  readonly lists: Pick<CloudLists, 'aggregates'>;
  readonly index: Pick<ServerIndex, 'placed'>;
}

/**
 * Reads flavors, volumes and ports for a plan between cells. What cannot be read is not in the result, and `unread` says why:
 * its servers stay where they are.
 *
 * @throws the signal's reason when it aborts; nothing else.
 */
export async function readCells(
  input: CellReadsInput,
  nova: Pick<Nova, 'listFlavors'>,
  neutron: Neutron,
  signal: AbortSignal,
): Promise<CellsReading> {
  const { asked, settings, home, others, lists } = input;
  const { map, ...rest } = settings;
  const servers = wantedServers(asked, home).flatMap((id) => input.index.placed.get(id)?.server ?? []);
  const wanted = new Set(Object.values(asked.flavorMap));
  const [flavors, ports] = await Promise.all([
    wanted.size === 0 ? { ok: true as const, value: [] } : fetched(() => nova.listFlavors({ signal }), signal),
    servers.length === 0
      ? { ok: true as const, value: [] }
      : fetched(
          () =>
            neutron.listPorts(
              servers.map(({ id }) => id),
              { signal },
            ),
          signal,
        ),
  ]);
  const unread: Reason[] = [];
  if (!flavors.ok) unread.push(note('flavors-unknown', `Nova's flavors could not be read: ${flavors.text}`));
  if (!ports.ok) unread.push(note('ports-unknown', `the ports of the servers could not be read: ${ports.text}`));
  return {
    commandId: input.commandId,
    asked,
    map: { ...map },
    settings: rest,
    others: others.map(({ cells: _, ...other }) => other),
    metadata: lists.aggregates.ok ? metadataOf(lists.aggregates.value) : {},
    flavors: flavors.ok ? flavorsOf(flavors.value, wanted) : {},
    facts: ports.ok ? factsOf(servers, ports.value) : {},
    unread,
  };
}

/** Ids of the servers that the plan may be about. */
function wantedServers({ from, servers, project }: CellsAsked, { aggregate, servers: all }: Snapshot): string[] {
  return all
    .filter(
      ({ id, name, host, projectId }) =>
        (from.includes(aggregate) || from.includes(host)) &&
        (servers === null || servers.includes(id) || servers.includes(name)) &&
        (project === null || projectId === project),
    )
    .map(({ id }) => id);
}

/** Host -> the metadata of its aggregates; the values that several give a key with a comma between them. */
function metadataOf(
  aggregates: readonly { readonly hosts: readonly string[]; readonly metadata: Readonly<Record<string, string>> }[],
): Record<string, Record<string, string>> {
  const found = new Map<string, Map<string, string>>();
  for (const { hosts, metadata } of aggregates)
    for (const host of hosts) {
      const known = found.get(host) ?? new Map<string, string>();
      for (const [key, value] of Object.entries(metadata)) {
        const before = known.get(key);
        known.set(key, before === undefined ? value : `${before},${value}`);
      }
      found.set(host, known);
    }
  return Object.fromEntries([...found].map(([host, metadata]) => [host, Object.fromEntries(metadata)]));
}

const flavorsOf = (flavors: readonly Flavor[], wanted: ReadonlySet<string>): Record<string, CellFlavor> =>
  Object.fromEntries(
    flavors
      .filter(({ name }) => wanted.has(name))
      .map(({ name, vcpus, ramMb, rootGb, ephemeralGb, swapMb, extraSpecs }) => [
        name,
        { name, vcpus, ramMb, diskGb: rootGb + ephemeralGb + Math.ceil(swapMb / 1024), extraSpecs: { ...extraSpecs } },
      ]),
  );

function factsOf(servers: readonly Server[], ports: readonly Port[]): Record<string, CellFacts> {
  const of = Map.groupBy(ports, ({ serverId }) => serverId);
  return Object.fromEntries(
    servers.map(({ id, volumeIds }) => [
      id,
      {
        volumes: volumeIds.length,
        ports: (of.get(id) ?? []).map(({ id, vnicType, requestsResources }) => ({ id, requestsResources, vnicType })),
      },
    ]),
  );
}
