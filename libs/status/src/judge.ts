import { some } from '@kronos/contracts';
import { type Cause, type CauseCode, causes, type Place } from './causes.ts';
import type { Facts } from './facts.ts';
import type { Finding } from './finding.ts';
import { findings } from './findings.ts';

/** Something that a person must check, or should know: one cause, with everything that it explains. */
export type Alarm = {
  readonly code: CauseCode;
  readonly severity: Cause['severity'];
  /** Where, in words: services, aggregates, hosts. */
  readonly about: string;
  readonly text: string;
  readonly remedy: string;
  /** `docs/runbook.md#section` */
  readonly runbook: string;
  readonly places: readonly Place[];
  /** Consequences, which have no alarm of their own. */
  readonly explains: readonly { readonly code: CauseCode; readonly about: string; readonly text: string }[];
};

const table: Readonly<Record<CauseCode, Cause>> = causes;
const codes = Object.keys(causes) as CauseCode[];

/** The alarms that follow from the facts: root causes in the order of the table, each with its consequences. */
export const judgeFacts = (facts: Facts): Alarm[] => alarms(findings(facts));

/** True unless both name a thing of one kind and it is not the same thing. */
const compatible = (cause: Place, other: Place): boolean =>
  (Object.keys(cause) as (keyof Place)[]).every((key) => other[key] === undefined || other[key] === cause[key]);

const explainsCode = (code: CauseCode, other: CauseCode): boolean => {
  const { explains } = table[code];
  return code !== other && (explains === 'everything' || explains.includes(other));
};

/** Causes behind which nothing can be known. */
export const unreadableCauses: ReadonlySet<CauseCode> = new Set(
  codes.filter((code) => table[code].explains === 'everything'),
);

/** Names an alarm: the same for as long as it is there, as one line. */
export const alarmKey = ({ code, places }: Alarm): string =>
  [code, ...table[code].apart.map((dimension) => places[0]?.[dimension] ?? '')].join('/');

/** Orders findings by cause: consequences go under their roots, and findings of one cause share an alarm. */
function alarms(found: readonly Finding[]): Alarm[] {
  const causeOf = (finding: Finding): Finding | null =>
    found.find((other) => explainsCode(other.code, finding.code) && compatible(other.place, finding.place)) ?? null;
  const rootOf = (finding: Finding): Finding => {
    let root = finding;
    for (let cause = causeOf(root); cause !== null; cause = causeOf(root)) root = cause;
    return root;
  };
  const groups = new Map<string, { readonly roots: Finding[]; readonly consequences: Finding[] }>();
  const groupOf = ({ code, place }: Finding) => {
    const key = JSON.stringify([code, ...table[code].apart.map((dimension) => place[dimension] ?? null)]);
    const group = groups.get(key) ?? { roots: [], consequences: [] };
    groups.set(key, group);
    return group;
  };
  for (const finding of found) {
    const root = rootOf(finding);
    if (root === finding) groupOf(finding).roots.push(finding);
    else groupOf(root).consequences.push(finding);
  }
  return [...groups.values()]
    .flatMap(({ roots, consequences }): Alarm[] => {
      const [first] = roots;
      if (first === undefined) return [];
      const { severity, remedy, section } = table[first.code];
      return [
        {
          code: first.code,
          severity,
          about: some([...new Set(roots.map(({ about }) => about))], 4),
          text: first.text,
          remedy: first.remedy ?? remedy,
          runbook: `docs/runbook.md#${section}`,
          places: roots.map(({ place }) => place),
          explains: consequences.map(({ code, about, text }) => ({ code, about, text })),
        },
      ];
    })
    .sort((a, b) => rank(a) - rank(b));
}

const rank = ({ code, severity }: Alarm): number => codes.indexOf(code) + (severity === 'info' ? codes.length : 0);
