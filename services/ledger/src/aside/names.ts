/** The names of hosts and VMs, to be searched. Pure. */
import { byText } from '@kronos/contracts';
import { isCounted } from '@kronos/placement';
import { z } from 'zod';
import { evenly } from './evenly.ts';

/** The hosts of one policy by value, the highest first: at most {@link MOST_BARS} quantiles of them. */
export type Skyline = {
  readonly policy: string;
  readonly threshold: number;
  readonly values: readonly number[];
  /** The host with the highest value; null: no host has one. */
  readonly highest: string | null;
};

/** More bars are not told apart in a row of a table. */
const MOST_BARS = 60;

type NamedVm = { readonly id: string; readonly name: string; readonly host: string };

/** The names in a snapshot. */
export type SnapshotNames = {
  /** ISO-8601 UTC, of the snapshot. */
  readonly time: string;
  readonly hosts: readonly string[];
  readonly vms: readonly NamedVm[];
  readonly skylines: readonly Skyline[];
};

/** The part of a snapshot that has names. */
const namedSchema = z.object({
  time: z.string(),
  hosts: z.array(
    z.object({
      name: z.string(),
      service: z.object({ status: z.string(), state: z.string(), forcedDown: z.boolean() }),
    }),
  ),
  servers: z.array(z.object({ id: z.string(), name: z.string(), host: z.string() })),
  scores: z.object({
    policies: z.array(
      z.object({
        policy: z.string(),
        threshold: z.number(),
        hosts: z.record(z.string(), z.object({ raw: z.number().nullable() })),
      }),
    ),
  }),
});

export const namesOfSnapshot = ({ time, hosts, servers, scores }: z.infer<typeof namedSchema>): SnapshotNames => ({
  time,
  hosts: hosts.map(({ name }) => name),
  vms: servers.map(({ id, name, host }) => ({ id, name, host })),
  skylines: scores.policies.map(({ policy, threshold, hosts: of }) => {
    const known = hosts.flatMap((host) => {
      const raw = of[host.name]?.raw ?? null;
      return raw === null || !isCounted(host) ? [] : [{ name: host.name, raw }];
    });
    known.sort((a, b) => b.raw - a.raw || byText(a.name, b.name));
    return { policy, threshold, values: bars(known.map(({ raw }) => raw)), highest: known[0]?.name ?? null };
  }),
});

/** `values`: the highest first. */
const bars = (values: readonly number[]): number[] =>
  evenly(values, MOST_BARS).map((value) => Number(value.toPrecision(4)));

/**
 * The names in the stored body of a snapshot. A search reads the newest snapshot of every aggregate, so only the names are
 * checked, at a quarter of the CPU. Null: it has another form, and must be read as a whole.
 */
export function searchNames(bytes: Uint8Array): SnapshotNames | null {
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
  const named = namedSchema.safeParse(body);
  return named.success ? namesOfSnapshot(named.data) : null;
}

type FoundName = {
  readonly kind: 'host' | 'vm';
  readonly aggregate: string;
  /** A VM's uuid; a host's name. */
  readonly id: string;
  readonly name: string;
  /** Where a VM is. */
  readonly host: string;
  readonly rank: number;
};

export type FoundNames = {
  /** All that fit, also those beyond the limit. */
  readonly total: number;
  readonly found: readonly FoundName[];
  /** Time of the oldest snapshot that was searched; null: none was. */
  readonly oldest: string | null;
};

/** The names of these VMs, by uuid. */
export function vmNames(names: ReadonlyMap<string, SnapshotNames>, ids: ReadonlySet<string>): [string, string][] {
  const found: [string, string][] = [];
  for (const { vms } of names.values()) for (const { id, name } of vms) if (ids.has(id)) found.push([id, name]);
  return found;
}

/** How well one of these texts fits: 0 is equal, 1 begins with it, 2 contains it; null: none does. `query` is in lower case. */
export function rankOf(query: string, texts: readonly string[]): number | null {
  let best: number | null = null;
  for (const text of texts) {
    const at = text.toLowerCase().indexOf(query);
    if (at < 0) continue;
    const rank = at > 0 ? 2 : text.length === query.length ? 0 : 1;
    if (best === null || rank < best) best = rank;
  }
  return best;
}

/** Orders results: the best fit first, then by name. */
export const byRank = (
  a: { readonly rank: number; readonly name: string; readonly id: string },
  b: { readonly rank: number; readonly name: string; readonly id: string },
): number => a.rank - b.rank || byText(a.name, b.name) || byText(a.id, b.id);

/** Hosts by name, VMs by name and uuid. `query` is in lower case. */
export function findNames(names: ReadonlyMap<string, SnapshotNames>, query: string, limit: number): FoundNames {
  const found: FoundName[] = [];
  let oldest: string | null = null;
  for (const [aggregate, { time, hosts, vms }] of names) {
    if (oldest === null || time < oldest) oldest = time;
    for (const host of hosts) {
      const rank = rankOf(query, [host]);
      if (rank !== null) found.push({ kind: 'host', aggregate, id: host, name: host, host, rank });
    }
    for (const { id, name, host } of vms) {
      const rank = rankOf(query, [name, id]);
      if (rank !== null) found.push({ kind: 'vm', aggregate, id, name, host, rank });
    }
  }
  return { total: found.length, found: found.sort(byRank).slice(0, limit), oldest };
}
