import { byText, type HostObservation, type ServerListing, type Snapshot, timeMs } from '@kronos/contracts';
import { serviceText } from '@kronos/facts';
import { aligned, figure } from '../../numbers.ts';
import { withSession } from '../../open.ts';
import { answer } from '../../output.ts';
import type { Shell } from '../../shell.ts';
import { type Cell, table } from '../../table.ts';
import type { Terminal } from '../../terminal.ts';
import { when } from '../../times.ts';
import { isHost, isVm, listedSnapshots, type VmsOptions } from './filters.ts';

/** One host as the newest snapshot of its aggregate has it. */
type HostRow = {
  readonly aggregate: string;
  readonly host: string;
  readonly service: string;
  readonly availabilityZone: string | null;
  readonly servers: number;
  /** By policy: the raw value; null without one. */
  readonly values: Readonly<Record<string, number | null>>;
  readonly freeVcpus: number | null;
  readonly freeRamMb: number | null;
  /** Where the list of its servers came from; null: not known. */
  readonly listing: ServerListing | null;
  readonly snapshotTimeMs: number;
};

/** kronos hosts. */
export async function listHosts(shell: Shell, options: VmsOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    const snapshots = await listedSnapshots(session, options);
    const rows = snapshots.flatMap((snapshot) => {
      const of = new Set(snapshot.servers.filter((server) => isVm(options, server)).map(({ host }) => host));
      return hostRows(snapshot).filter(
        ({ host }) => isHost(options, host) && (options.vm === undefined || of.has(host)),
      );
    });
    await answer(shell, options, rows, (terminal) => hostsTable(terminal, rows, shell.now()));
  });
}

const free = ({ inventory }: HostObservation, resource: string): number | null => {
  const counted = inventory?.[resource];
  return counted === undefined ? null : counted.capacity - counted.used;
};

const serviceLine = (service: HostObservation['service']): string =>
  service.disabledReason === null ? serviceText(service) : `${serviceText(service)}: ${service.disabledReason}`;

function hostRows({ aggregate, hosts, servers, scores, time }: Snapshot): HostRow[] {
  const residents = Map.groupBy(servers, (server) => server.host);
  return hosts
    .map((host) => ({
      aggregate,
      host: host.name,
      service: serviceLine(host.service),
      availabilityZone: host.availabilityZone,
      servers: residents.get(host.name)?.length ?? 0,
      values: Object.fromEntries(scores.policies.map(({ policy, hosts: of }) => [policy, of[host.name]?.raw ?? null])),
      freeVcpus: free(host, 'VCPU'),
      freeRamMb: free(host, 'MEMORY_MB'),
      listing: host.listing ?? null,
      snapshotTimeMs: timeMs(time),
    }))
    .sort((a, b) => byText(a.host, b.host));
}

function hostsTable(terminal: Terminal, rows: readonly HostRow[], nowMs: number): string {
  if (rows.length === 0) return 'No host: kronos status shows why.\n';
  const policies = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))];
  return table(
    terminal,
    [
      { head: 'host', flex: true, host: true },
      { head: 'aggregate', flex: true, minor: rows.every(({ aggregate }) => aggregate === rows[0]?.aggregate) },
      { head: 'service', flex: true },
      { head: 'vms', right: true },
      ...policies.map((head) => ({ head, right: true })),
      { head: 'vcpus free', right: true, minor: true },
      { head: 'MiB free', right: true, minor: true },
      { head: 'zone', wide: true },
      { head: 'list', wide: true },
      { head: 'checked', wide: true },
      { head: 'seen', wide: true },
    ],
    rows.map((row): Cell[] => [
      row.host,
      row.aggregate,
      row.service === 'enabled' ? row.service : { text: row.service, style: 'yellow' },
      String(row.servers),
      ...policies.map((policy) => aligned(row.values[policy] ?? null)),
      figure(row.freeVcpus),
      figure(row.freeRamMb, 0),
      row.availabilityZone ?? '',
      row.listing?.from ?? '',
      row.listing === null ? '' : when(timeMs(row.listing.checkedAt), nowMs),
      when(row.snapshotTimeMs, nowMs),
    ]),
  );
}
