import { type AnswerCause, profileWords, type Reason, sizesText, some } from '@kronos/contracts';
import type { Place } from './causes.ts';
import type { NewestSnapshot } from './facts.ts';
import type { Finding } from './finding.ts';

/** Problems of a snapshot that say a list of Nova's could not be read. */
const UNREAD = new Set([
  'aggregates-unknown',
  'hypervisors-unknown',
  'servers-unknown',
  'server-groups-unknown',
  'migrations-unknown',
]);

/** Problems of a snapshot by which Nova does not reach a cell. */
const DOWN_CELL = new Set(['hosts-of-down-cell', 'servers-of-down-cell']);

/** Share of the VMs whose values cannot be used from which that is an alarm. Fewer are noise of an exporter. */
const UNUSED = 0.1;
/** Of fewer VMs with a value than this share, status tells. */
const MEASURED = 0.5;

type PolicySummary = NewestSnapshot['policies'][number];

/**
 * The findings of the newest snapshot about hosts and policies. Pure.
 *
 * @param drains hosts that Kronos drains: that they are disabled is said by the line of the drain
 */
export function snapshotFindings(
  aggregate: string,
  newest: NewestSnapshot,
  drains: Pick<ReadonlyMap<string, unknown>, 'has'>,
): Finding[] {
  return [
    ...newest.problems.map((one) => problem(aggregate, one)),
    ...hosts(aggregate, newest, drains),
    ...noted('migration-abandoned', aggregate, newest.abandoned),
    ...noted('group-broken', aggregate, newest.brokenGroups),
    ...noted('ports-unread', aggregate, newest.unreadPorts),
    ...newest.policies.flatMap((one) => policy(aggregate, newest, one)),
  ];
}

function problem(aggregate: string, { code, text, detail }: NewestSnapshot['problems'][number]): Finding {
  const common = { about: aggregate, text };
  if (UNREAD.has(code)) {
    const refused = detail?.error === 'KRONOS_OPENSTACK_UNAUTHORIZED' || detail?.error === 'KRONOS_OPENSTACK_FORBIDDEN';
    const place = { service: 'scorer', aggregate };
    return { code: refused ? 'openstack-refused' : 'openstack-unread', place, ...common };
  }
  const place = { aggregate, reason: code };
  return { code: DOWN_CELL.has(code) ? 'cell-down' : 'observation-problem', place, ...common };
}

const STATES = {
  down: { code: 'host-down', text: 'is down' },
  forcedDown: { code: 'host-down', text: 'is forced down' },
  unknown: { code: 'host-unknown', text: 'is in an unknown state' },
  disabled: { code: 'host-disabled', text: 'is disabled' },
} as const;

function hosts(
  aggregate: string,
  newest: NewestSnapshot,
  drains: Pick<ReadonlyMap<string, unknown>, 'has'>,
): Finding[] {
  const { outOfService } = newest;
  if (outOfService === undefined)
    return [
      {
        code: 'snapshot-unjudged',
        place: { aggregate },
        about: aggregate,
        text: 'the states of its hosts are unknown: an older scorer took the newest snapshot',
      },
    ];
  const countOf = (wanted: string): number => outOfService.find(({ state }) => state === wanted)?.count ?? 0;
  const down = countOf('down');
  // Hosts do not fail together; what all of them report through does.
  const bus: Finding[] =
    down > 1 && down === newest.hosts - countOf('disabled') - countOf('forcedDown')
      ? [
          {
            code: 'computes-down',
            place: { aggregate },
            about: aggregate,
            text: `every nova-compute is down (${down} of ${newest.hosts} hosts of ${aggregate}): the message bus or nova-conductor is the likely cause`,
          },
        ]
      : [];
  const each = outOfService.flatMap(({ state, count, hosts: names }) => {
    const { code, text } = STATES[state];
    const drained = state === 'disabled' ? names.filter((host) => drains.has(host)) : [];
    const own = drained.length === 0 ? '' : `; Kronos drains ${some(drained, 3)}`;
    const sentence = `nova-compute ${text} (${count} of ${newest.hosts} hosts of ${aggregate}${own})`;
    return names
      .filter((host) => !drained.includes(host))
      .map((host): Finding => ({ code, place: { aggregate, host }, about: host, text: sentence }));
  });
  return [...bus, ...each];
}

const noted = (
  code: 'migration-abandoned' | 'group-broken' | 'ports-unread',
  aggregate: string,
  note: NewestSnapshot['abandoned'],
): Finding[] => (note === undefined ? [] : [{ code, place: { aggregate }, about: aggregate, text: note.text }]);

function policy(aggregate: string, newest: NewestSnapshot, one: PolicySummary): Finding[] {
  const place = { aggregate, policy: one.policy };
  const about = `policy ${one.policy} in ${aggregate}`;
  const nobody = one.matchedHosts === 0 && newest.hosts > 0 && nameless(one);
  const found: Finding[] = [];
  if (nobody)
    found.push({
      code: 'policy-no-host',
      place: { ...place, reason: one.hostCause ?? 'no-label' },
      about,
      ...noHost(one, newest),
    });
  else if (!one.participates) found.push(skipped(place, about, one));
  return [...found, ...servers(place, about, one, newest.servers), ...profiles(place, about, one)];
}

/** Sizes that are assumed, and weights that do not add up. */
function profiles(place: Place, about: string, { sizes, profileSum }: PolicySummary): Finding[] {
  const found: Finding[] = [];
  if (sizes?.named === false) found.push({ code: 'policy-sizes-assumed', place, about, text: sizesText(sizes) });
  if (profileSum !== undefined) {
    const code = profileSum.cause === 'load-without-vm' ? 'policy-host-load' : 'policy-profile-sum';
    found.push({ code, place: { ...place, reason: profileSum.cause }, about, ...profileWords(profileSum) });
  }
  return found;
}

/** Without a value of any host: whether the query or its label is the cause, and not what became of its series. */
const nameless = ({ hostCause, reason }: PolicySummary): boolean =>
  hostCause === undefined
    ? reason?.code !== 'policy-unreachable' && reason?.code !== 'policy-error' && reason?.code !== 'policy-stale'
    : hostCause === 'no-series' || hostCause === 'no-label' || hostCause === 'missing';

function noHost(
  { hostCause, reason }: PolicySummary,
  { hosts: all }: NewestSnapshot,
): Pick<Finding, 'text' | 'remedy'> {
  if (hostCause === 'no-series')
    return {
      text: `Prometheus has no series for its query: no exporter of hosts reports, or the metric does not exist`,
      remedy: 'Look at the scrape targets in Prometheus first, then at imbalance_query; `kronos config check` runs it.',
    };
  const why = hostCause === 'no-label' && reason?.text !== undefined ? `: ${reason.text}` : '';
  return { text: `its query matches none of ${all} hosts${why}` };
}

const SKIP_REMEDIES: Readonly<Partial<Record<AnswerCause, string>>> = {
  refused: 'Correct the query in policies.yaml; `kronos config check` runs it.',
  'duplicate-series': 'Select one exporter in the query, or aggregate it: max by (LABEL) (...).',
  stale: 'Repair the exporter of these hosts, or its scrape: the series were there a while ago.',
  missing: 'Run the exporter on the hosts that are named, and check that Prometheus scrapes them.',
  'no-series': 'Look at the scrape targets in Prometheus first, then at the query.',
  'not-finite': 'Look at the query: a division by zero gives NaN or Inf.',
  warning: 'Repair the store that the warning names: the answer may lack a part of the series.',
};

const SKIP_TEXT = 'it is skipped';

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

const UNKNOWN_REASON: Partial<Reason> & Pick<Reason, 'text'> = { text: 'for an unknown reason' };

function skipped(place: Place, about: string, { reason, hostCause }: PolicySummary): Finding {
  const { text, code, detail } = reason ?? UNKNOWN_REASON;
  if (code === 'policy-no-destination') return { code, place, about, text };
  if (code === 'policy-unreachable') {
    const refused = detail?.cause === 'unauthorized';
    return {
      code: refused ? 'prometheus-refused' : 'prometheus-unread',
      place: { ...place, service: 'scorer' },
      about: place.aggregate ?? about,
      text: refused ? text : `Prometheus is not read: ${text}`,
    };
  }
  if (code === 'policy-out-of-range')
    return {
      code: 'policy-skipped',
      place: { ...place, reason: code },
      about,
      text: `${SKIP_TEXT}: ${text}`,
      remedy: 'Make the query a share from 0 to 1: divide percentages by 100, and amounts by the size of the host.',
    };
  const cause = textOf(hostCause ?? detail?.cause);
  const remedy = cause === null ? undefined : SKIP_REMEDIES[cause as AnswerCause];
  return {
    code: 'policy-skipped',
    place: { ...place, reason: cause ?? code ?? 'unknown' },
    about,
    text: `${SKIP_TEXT}: ${text}`,
    ...(remedy === undefined ? {} : { remedy }),
  };
}

/** Findings about values of VMs that are missing. */
function servers(place: Place, about: string, one: PolicySummary, all: number): Finding[] {
  const { matchedServers: measured, vms } = one;
  if (measured === undefined || all === 0) return [];
  const found = unused(place, about, one, all);
  if (found.length > 0) return found;
  if (vms?.cause === 'warning')
    found.push({
      code: 'policy-answer-partial',
      place,
      about,
      text: `the answer about VMs may lack some: ${vms.text}`,
    });
  if (measured === 0)
    return vms?.cause === 'unreachable' || vms?.cause === 'unauthorized'
      ? found
      : [...found, noServer(place, about, one, all)];
  if (measured < MEASURED * all)
    found.push({
      code: 'policy-few-servers',
      place,
      about,
      text: `only ${measured} of ${all} VMs have a value; the others use vm_profile_fallback, and with \`skip\` they never move`,
    });
  return found;
}

/** Values of VMs that cannot be used: one exporter or unit is wrong where many are of one kind. */
function unused(place: Place, about: string, one: PolicySummary, all: number): Finding[] {
  const { matchedServers: measured = 0, vms } = one;
  const found: Finding[] = [];
  const { outside = 0, duplicates = 0, lowest, highest } = vms?.unused ?? {};
  const enough = (count: number): boolean => count > 0 && count >= UNUSED * (measured + count);
  if (enough(outside))
    found.push({
      code: 'policy-server-values',
      place: { ...place, reason: 'outside' },
      about,
      text: `the values of ${outside} of ${all} VMs are outside [0,1] (from ${lowest} to ${highest}) and count as missing`,
    });
  if (enough(duplicates))
    found.push({
      code: 'policy-server-values',
      place: { ...place, reason: 'duplicates' },
      about,
      text: `${duplicates} of ${all} VMs have several series each, so none of them counts`,
      remedy: 'Select one exporter in vm_profile_query, or aggregate it: sum by (LABEL) (...).',
    });
  return found;
}

function noServer(place: Place, about: string, { vms }: PolicySummary, all: number): Finding {
  const common = { code: 'policy-no-server', place, about } as const;
  if (vms?.cause === 'no-series')
    return {
      ...common,
      text: `Prometheus has no series for vm_profile_query: no exporter of VMs reports, or the metric does not exist`,
      remedy: 'Look at the scrape targets in Prometheus first, then at vm_profile_query.',
    };
  if (vms?.cause === 'refused')
    return { ...common, text: vms.text, remedy: 'Correct vm_profile_query; `kronos config check` runs it.' };
  return { ...common, text: `its query matches none of ${all} VMs` };
}
