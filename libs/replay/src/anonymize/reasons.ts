/** Reasons of a snapshot with made-up names. They quote Nova, Prometheus and labels of metrics, which may say anything. */
import { type Reason, some } from '@kronos/contracts';
import type { KindOfName, Names } from './names.ts';

/** The kind of value in each field of details. Any other field is left out. */
const DETAILS: Readonly<Record<string, KindOfName | 'word' | 'figure'>> = {
  host: 'host',
  hosts: 'host',
  source: 'host',
  id: 'server',
  serverId: 'server',
  server: 'server',
  servers: 'server',
  serverName: 'serverName',
  aggregates: 'aggregate',
  group: 'group',
  groups: 'group',
  query: 'query',
  error: 'word',
  health: 'word',
  cause: 'word',
  status: 'word',
  changedAt: 'word',
  migrations: 'figure',
  missing: 'figure',
  unknown: 'figure',
  ambiguous: 'figure',
  labels: 'figure',
  value: 'figure',
  size: 'figure',
};
type Held = (typeof DETAILS)[string];
type Json = NonNullable<Reason['detail']>[string];

/** Calls back with each text of a detail and with what it is. */
function textsOf(held: Held, value: Json, found: (held: Held, text: string) => void): void {
  if (typeof value === 'string') found(held, value);
  else if (Array.isArray(value)) for (const one of value) textsOf(held, one, found);
  else if (typeof value === 'object' && value !== null) detailTexts(value, found);
}

const detailTexts = (detail: Readonly<Record<string, Json>>, found: (held: Held, text: string) => void): void => {
  for (const [key, value] of Object.entries(detail)) {
    const held = DETAILS[key];
    if (held !== undefined) textsOf(held, value, found);
  }
};

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Learns the names in the details of a reason: hosts and VMs among them that the snapshot does not have otherwise. */
export const learnReason = (names: Names, { detail = {} }: Pick<Reason, 'detail'>): void =>
  detailTexts(detail, (held, text) => {
    if (held === 'word' || held === 'figure') return;
    // Planners name some by their names there.
    if ((held !== 'server' && held !== 'group') || UUID.test(text)) names.learn(held, text);
  });

const renamed = (names: Names, held: Held, value: Json): Json => {
  if (typeof value === 'string')
    return held === 'word' ? value : held === 'figure' ? 'left out' : names.as(held, value);
  if (Array.isArray(value)) return value.map((one) => renamed(names, held, one));
  return typeof value === 'object' && value !== null ? renamedDetail(names, value) : value;
};

const renamedDetail = (names: Names, detail: Readonly<Record<string, Json>>): Record<string, Json> =>
  Object.fromEntries(
    Object.entries(detail).flatMap(([key, value]) => {
      const held = DETAILS[key];
      return held === undefined ? [] : [[key, renamed(names, held, value)]];
    }),
  );

/** Reasons of decisions whose sentence is one of the snapshot. */
const QUOTING = new Set([
  'snapshot-problems',
  'no-forecast',
  'policy-error',
  'policy-partial',
  'policy-stale',
  'policy-unreachable',
]);

export const quotesSnapshot = (value: object): value is Reason =>
  'code' in value && typeof value.code === 'string' && 'text' in value && QUOTING.has(value.code);

/** The words of its code, and the hosts and VMs of its details, in place of its sentence. */
export function anonymousReason(names: Names, { code, detail }: Reason): Reason {
  const words = code.replaceAll('-', ' ');
  if (detail === undefined) return { code, text: words };
  const known = renamedDetail(names, detail);
  const about: string[] = [];
  detailTexts(known, (held, text) => {
    if (held === 'host' || held === 'server') about.push(text);
  });
  return { code, text: about.length === 0 ? words : `${words}: ${some([...new Set(about)])}`, detail: known };
}
