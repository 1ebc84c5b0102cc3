import type { Clock } from '@kronos/clock';
import { type Config, type Region, regionsOf } from '@kronos/config';
import { errorText } from '@kronos/contracts';
import { createHttp, cut, type Http, parseAs } from '@kronos/http';
import { kronosVersion } from '@kronos/telemetry';
import { z } from 'zod';

/** The answer of a region's ledger about all its aggregates; ratios are multiples of the threshold. */
type RegionSeen = {
  readonly aggregates: number;
  readonly hosts: number;
  readonly vms: number;
  readonly moves: number;
  readonly alarms: number;
  /** The worst; null: none is known. */
  readonly ratio: number | null;
  /** State of an aggregate -> the number of aggregates in it. */
  readonly standings: Readonly<Record<string, number>>;
};
/** `problem`: why nothing is seen; else null. */
export type RegionReport = Region &
  ({ readonly seen: RegionSeen; readonly problem: null } | { readonly seen: null; readonly problem: string });

/** The installations of `[console] regions`. */
export type Regions = {
  /** Asks each of them, or gives what it said in the last 10 s. Never rejects. */
  readonly read: () => Promise<readonly RegionReport[]>;
  readonly close: () => Promise<void>;
};

/** A view of the console waits for this. */
const LIMIT_MS = 4_000;
/** However many browsers ask, a region is asked this often. */
const FRESH_MS = 10_000;
/** Bytes of an answer: more than the fleet of a hundred thousand hosts takes. */
const MOST_ANSWER = 8 * 1024 * 1024;
/** Characters that a region may say about what it refuses. */
const MOST_WORDS = 300;

/** Fields that every version since 1.0 answers; others are ignored. */
const fleetSchema = z.object({
  aggregates: z.array(
    z.object({
      standing: z.string(),
      ratio: z.number().nullable(),
      hosts: z.int().nullable(),
      vms: z.int().nullable(),
      movesInFlight: z.int(),
    }),
  ),
});
const refusalSchema = z.object({ error: z.string() });
const alarmsSchema = z.object({ alarms: z.array(z.object({ severity: z.string() })) });

/** @throws BadHttpOptions when the CA file cannot be read */
export function openRegions({ console: own }: Pick<Config, 'console'>, clock: Clock): Regions {
  const regions = regionsOf(own.regions);
  if (regions.length === 0) return { read: async () => [], close: async () => undefined };
  const http = createHttp({
    clock,
    userAgent: `kronos/${kronosVersion}`,
    limits: { connectMs: LIMIT_MS, headersMs: LIMIT_MS, bodyMs: LIMIT_MS, totalMs: LIMIT_MS },
    maxBodyBytes: MOST_ANSWER,
    ...(own.cafile === null ? {} : { tls: { caFile: own.cafile } }),
  });
  let last: { readonly atMs: number; readonly reports: Promise<readonly RegionReport[]> } | null = null;
  return {
    read() {
      const atMs = clock.monotonic();
      if (last === null || atMs - last.atMs > FRESH_MS)
        last = { atMs, reports: Promise.all(regions.map((region) => report(http, region))) };
      return last.reports;
    },
    close: () => http.close(),
  };
}

async function report(http: Http, region: Region): Promise<RegionReport> {
  try {
    const [{ aggregates }, { alarms }] = await Promise.all([
      ask(http, region, '/api/v1/fleet', fleetSchema),
      ask(http, region, '/api/v1/alarms', alarmsSchema),
    ]);
    const sum = (of: 'hosts' | 'vms' | 'movesInFlight') => aggregates.reduce((total, one) => total + (one[of] ?? 0), 0);
    const ratios = aggregates.flatMap(({ ratio }) => (ratio === null ? [] : [ratio]));
    const standings = Map.groupBy(aggregates, ({ standing }) => standing);
    const seen: RegionSeen = {
      aggregates: aggregates.length,
      hosts: sum('hosts'),
      vms: sum('vms'),
      moves: sum('movesInFlight'),
      alarms: alarms.filter(({ severity }) => severity === 'alarm').length,
      ratio: ratios.length === 0 ? null : Math.max(...ratios),
      standings: Object.fromEntries([...standings].map(([standing, of]) => [standing, of.length])),
    };
    return { ...region, seen, problem: null };
  } catch (error) {
    return { ...region, seen: null, problem: errorText(error) };
  }
}

/** The reason that a ledger gives for a refused request. Empty when another server answers, such as a proxy that asks for a login. */
function refusal(text: string): string {
  try {
    return `: ${cut(refusalSchema.parse(JSON.parse(text)).error, MOST_WORDS)}`;
  } catch {
    return '';
  }
}

/** @throws Error when there is no usable answer */
async function ask<S extends z.ZodType>(http: Http, { name, url }: Region, route: string, schema: S) {
  const call = { service: `region ${name}`, method: 'GET', url: `${url}${route}`, route } as const;
  const { status, text } = await http.call(call);
  if (status !== 200) throw new Error(`it answers ${status} to ${route}${refusal(text)}`);
  return parseAs(call, schema, text);
}
