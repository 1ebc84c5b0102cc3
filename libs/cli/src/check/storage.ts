/** Whether NATS has room for what Kronos stores, and keeps it. */

import { type Durability, durabilityText } from '@kronos/connect';
import { type StorageLimits, storageNeeded } from '@kronos/contracts';
import type { AccountLimits, EventLog } from '@kronos/eventlog';
import { byteText } from '../numbers.ts';
import { type CheckFinding, finding } from './finding.ts';

const DAY = 86_400;
const WHAT = 'NATS storage';

export type Storage = {
  readonly limits: StorageLimits;
  readonly replicas: number;
  /** Null when NATS could not be asked. */
  readonly account: AccountLimits | null;
};

/** The storage limits of the streams, and whether the account may store that much. */
export function judgeAccount({ limits, replicas, account }: Storage): CheckFinding {
  const { file, memory } = storageNeeded(limits);
  const needs = { file: file * replicas, memory: memory * replicas };
  const copies = replicas === 1 ? '' : ` on each of ${replicas} servers (${byteText(needs.file)} in all)`;
  const text = `Kronos stores at most ${byteText(file)} in files and ${byteText(memory)} in memory${copies}`;
  const detail = { fileBytes: needs.file, memoryBytes: needs.memory, replicas };
  if (account === null) return finding('skipped', 'nats-storage', WHAT, { text, detail });
  const short = (['file', 'memory'] as const).flatMap((kind) => {
    const allowed = account[kind];
    return allowed !== null && allowed < needs[kind]
      ? [
          `the account may store ${byteText(allowed)} in ${kind === 'file' ? 'files' : 'memory'}, and needs ${byteText(needs[kind])}`,
        ]
      : [];
  });
  if (short.length === 0) return finding('ok', 'nats-storage', WHAT, { text, detail });
  const remedy =
    'Raise max_file and max_mem of the account in the configuration of the NATS servers, or lower [nats] log_max_bytes and snapshot_max_bytes.';
  return finding('failed', 'nats-storage', WHAT, { text: [text, ...short].join('\n'), remedy, detail });
}

/**
 * Whether an event that NATS has acknowledged survives a power failure: only with the server's option `sync_interval: always`, which no
 * client can see. nats-server 2.9 does not have it.
 *
 * @param servers the answers of the monitoring addresses
 */
export function judgeDurability(
  { version, capabilities }: EventLog['server'],
  servers: readonly Durability[],
): CheckFinding {
  const end = (state: CheckFinding['state'], text: string, remedy?: string): CheckFinding =>
    finding(state, 'nats-durability', 'NATS durability', {
      text,
      detail: {
        version,
        ...(servers.length === 0 ? {} : { servers: servers.map(({ url, writes }) => `${url}: ${writes}`) }),
      },
      ...(remedy === undefined ? {} : { remedy }),
    });
  if (!capabilities.syncInterval)
    return end(
      'warning',
      `nats-server ${version} writes to its disk every two minutes: a power failure loses events that it has acknowledged`,
      'Use nats-server 2.10 or newer with sync_interval: always, as in deploy/nats.',
    );
  if (servers.length === 0)
    return end(
      'skipped',
      'only the servers themselves tell whether an acknowledged event is on disk',
      'Set [nats] monitoring. Or on each server, curl -s http://127.0.0.1:8222/jsz must show "sync_always": true (docs/nats.md).',
    );
  const wrong = servers.flatMap((one) => durabilityText(one) ?? []);
  if (wrong.length > 0)
    return end(
      'warning',
      wrong.join('\n'),
      'Set sync_interval: always in the block jetstream, as in deploy/nats (docs/nats.md).',
    );
  return end(
    'ok',
    `every acknowledged event is on the disk of ${servers.length === 1 ? 'the server' : `${servers.length} servers`}`,
  );
}

/** Finds out whether the bucket has room for the snapshots of the configured retention. */
export function judgeSnapshots(
  limits: StorageLimits,
  /** Bytes of each snapshot of a cycle, after gzip. */
  snapshots: readonly number[],
  intervalSeconds: number,
): CheckFinding[] {
  const cycle = snapshots.reduce((sum, bytes) => sum + bytes, 0);
  if (cycle === 0) return [];
  const { snapshotMaxAgeSeconds: wanted, snapshotMaxBytes: room } = limits;
  const perDay = (cycle * DAY) / intervalSeconds;
  const days = room / perDay;
  const detail = { bytesPerCycle: cycle, bytesPerDay: Math.round(perDay), days: Math.round(days * 10) / 10 };
  const text = `the snapshots of a cycle take ${byteText(cycle)}, ${byteText(perDay)} a day: snapshot_max_bytes (${byteText(room)}) is enough for ${days.toFixed(1)} days`;
  if (days * DAY >= wanted) return [finding('ok', 'snapshot-storage', WHAT, { text, detail })];
  const needed = Math.ceil((perDay * wanted) / DAY / 1024 ** 3);
  return [
    finding('warning', 'snapshot-storage', WHAT, {
      text: `${text}, and snapshot_max_age asks for ${(wanted / DAY).toFixed(1)}`,
      remedy: `Set [nats] snapshot_max_bytes = ${needed}GiB, or a snapshot_max_age that fits: the oldest snapshots are dropped, and what is dropped cannot be replayed.`,
      detail,
    }),
  ];
}
