/** Names and the made-up ones that replace them. First all names are learnt, then the table is settled, then names are looked up. */
import { ALL, aggregateToken, byText, UNASSIGNED } from '@kronos/contracts';

/** The kinds of names. Names of one kind keep their order, so that a decision which sorts by them stays the same. */
const kinds = {
  aggregate: (n: string) => `aggregate-${n}`,
  host: (n: string) => `host-${n}`,
  hypervisor: (n: string) => `hypervisor-${n}`,
  server: (n: string) => `00000000-0000-4000-8000-${n.padStart(12, '0')}`,
  serverName: (n: string) => `vm-${n}`,
  uuid: (n: string) => `11111111-0000-4000-8000-${n.padStart(12, '0')}`,
  project: (n: string) => `project-${n}`,
  zone: (n: string) => `zone-${n}`,
  cell: (n: string) => `cell-${n}`,
  group: (n: string) => `22222222-0000-4000-8000-${n.padStart(12, '0')}`,
  groupName: (n: string) => `group-${n}`,
  flavor: (n: string) => `flavor-${n}`,
  query: (n: string) => `query_${n}`,
  label: (n: string) => `label-${n}`,
  person: (n: string) => `person-${n}`,
  process: (n: string) => `process-${n}`,
  request: (n: string) => `req-${n}`,
  custom: (n: string) => `CUSTOM_${n}`,
  value: (n: string) => `value-${n}`,
} as const;
export type KindOfName = keyof typeof kinds;

/** Names of Kronos's own, which name nobody. */
const OWN = new Set<string>([UNASSIGNED, ALL, '']);
/** A character of a word. */
const WORD = /[\p{L}\p{N}_]/u;
const CUSTOM = /CUSTOM_[A-Z0-9_]+/g;
/** Places in a network, which errors quote. */
const PLACES = new RegExp(
  [
    /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/,
    // IPv4; IPv6 and hardware addresses, which have more colons than times; names with their domain.
    /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/,
    /(?<![\w:.])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}(?![\w:])/,
    /\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
);

export class Names {
  readonly #learnt = new Map<KindOfName, Set<string>>();
  readonly #maps = new Map<KindOfName, Map<string, string>>();
  /** Every name, for sentences. */
  #anywhere = new Map<string, string>();
  /** Lengths of names, the longest first. */
  #lengths: readonly number[] = [];

  learn(kind: KindOfName, name: string | null | undefined): void {
    if (name === null || name === undefined || OWN.has(name)) return;
    const names = this.#learnt.get(kind) ?? new Set();
    this.#learnt.set(kind, names);
    names.add(name);
  }

  learnCustom(text: string): void {
    for (const name of text.match(CUSTOM) ?? []) this.learn('custom', name);
  }

  settle(): void {
    for (const [kind, names] of this.#learnt) {
      const sorted = [...names].sort(byText);
      const digits = String(sorted.length).length;
      this.#maps.set(kind, new Map(sorted.map((name, i) => [name, kinds[kind](String(i + 1).padStart(digits, '0'))])));
    }
    this.#anywhere = new Map([...this.#maps.values()].flatMap((map) => [...map]));
    this.#lengths = [...new Set([...this.#anywhere.keys()].map((name) => name.length))].sort((a, b) => b - a);
  }

  /** Every name that is replaced. */
  all(): readonly string[] {
    return [...this.#anywhere.keys()];
  }

  as(kind: KindOfName, name: string): string {
    return OWN.has(name) ? name : (this.#maps.get(kind)?.get(name) ?? kinds[kind]('0'));
  }

  asOrNull<T extends string | null | undefined>(kind: KindOfName, name: T): T {
    return (typeof name === 'string' ? this.as(kind, name) : name) as T;
  }

  each(kind: KindOfName, names: readonly string[]): string[] {
    return names.map((name) => this.as(kind, name));
  }

  keys<V>(kind: KindOfName, record: Readonly<Record<string, V>>): Record<string, V> {
    return Object.fromEntries(Object.entries(record).map(([key, value]) => [this.as(kind, key), value]));
  }

  /** Replaces custom traits and resource classes within a text. */
  custom(text: string): string {
    return text.replaceAll(CUSTOM, (name) => this.as('custom', name));
  }

  customKeys<V>(record: Readonly<Record<string, V>>): Record<string, V> {
    return Object.fromEntries(Object.entries(record).map(([key, value]) => [this.custom(key), value]));
  }

  /** A sentence or a name of unknown kind: every name in it that stands as a word of its own is replaced. Places in a network are left out. */
  sentence(text: string): string {
    const whole = this.#anywhere.get(text);
    if (whole !== undefined) return whole;
    let out = '';
    for (let i = 0; i < text.length; ) {
      const length = this.#nameAt(text, i);
      if (length === 0) {
        out += text.charAt(i);
        i += 1;
      } else {
        out += this.#anywhere.get(text.slice(i, i + length)) ?? '';
        i += length;
      }
    }
    return this.custom(out).replaceAll(PLACES, 'left out');
  }

  /** Length of the longest name that begins there and is a word of its own; 0: there is none. */
  #nameAt(text: string, at: number): number {
    if (at > 0 && WORD.test(text.charAt(at - 1))) return 0;
    const fits = (length: number): boolean =>
      at + length <= text.length &&
      this.#anywhere.has(text.slice(at, at + length)) &&
      !WORD.test(text.charAt(at + length));
    return this.#lengths.find(fits) ?? 0;
  }

  /** Any JSON value of which nothing is known but that it holds names somewhere. */
  deep<T>(value: T): T {
    if (typeof value === 'string') return this.sentence(value) as T;
    if (Array.isArray(value)) return value.map((inner: unknown) => this.deep(inner)) as T;
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [this.#anywhere.get(key) ?? key, this.deep(inner)]),
    ) as T;
  }

  /** Ids of snapshots, plans, tasks and messages: they begin with, or hold, the token of an aggregate. */
  id(text: string): string {
    for (const [name, other] of this.#maps.get('aggregate') ?? []) {
      const token = aggregateToken(name);
      const at = text.startsWith(`${token}-`) || text === token ? 0 : text.indexOf(`:${token}`) + 1;
      const before = at > 0 || text.startsWith(token);
      const end = at + token.length;
      if (before && text.startsWith(token, at) && (end === text.length || '-:'.includes(text.charAt(end))))
        return text.slice(0, at) + aggregateToken(other) + text.slice(end);
    }
    return text;
  }
}
