/** Whether anything can move in an aggregate under a configuration. Pure. */
import {
  type CompleteEngineOptions,
  count,
  profileWords,
  SIZES_REMEDY,
  type Snapshot,
  sizesText,
  some,
  timeMs,
  UNASSIGNED,
} from '@kronos/contracts';
import { emptyMemory, generationsOf, generationText, meaningOf, observe, type ReasonCode } from '@kronos/placement';
import { type CheckFinding, finding } from './finding.ts';

/** Problems that leave the hosts unknown while they last. */
const HOSTS_UNKNOWN = new Set(['aggregates-unknown', 'aggregate-not-found', 'hypervisors-unknown']);

/** One finding per problem of the observation, and one about the share of the VMs that may move. */
export function judgeAggregate(
  snapshot: Snapshot,
  options: CompleteEngineOptions,
  /** Names of all aggregates that Nova has. */
  aggregates: readonly string[] = [],
): CheckFinding[] {
  const title = snapshot.aggregate === UNASSIGNED ? 'the unassigned hosts' : `aggregate ${snapshot.aggregate}`;
  const problems = snapshot.problems.map((problem) =>
    finding('failed', `problem-${problem.code}`, title, {
      text: `${problem.text}: nothing is planned`,
      remedy: problem.code === 'aggregate-not-found' ? unknownAggregate(aggregates) : undefined,
    }),
  );
  if (snapshot.problems.some(({ code }) => HOSTS_UNKNOWN.has(code))) return problems;
  const observed = observe(snapshot, emptyMemory, options, timeMs(snapshot.time));
  const { cluster, vmGrounds, hostGrounds, judged } = observed;
  const hosts = cluster.H;
  const destinations = hosts - hostGrounds.size;
  const refused = new Map<ReasonCode, number>();
  for (const { code } of vmGrounds.values()) refused.set(code, (refused.get(code) ?? 0) + 1);
  const movable = cluster.V - vmGrounds.size;
  const skipped = judged.filter((policy) => policy.reason !== null);
  const counts = [...refused].sort(([, a], [, b]) => b - a);
  const detail = {
    hosts,
    destinations,
    vms: cluster.V,
    movable,
    ...Object.fromEntries(counts),
    policiesSkipped: skipped.map(({ policy }) => policy.name),
  };
  const share = cluster.V === 0 ? '' : ` (${Math.round((100 * movable) / cluster.V)} %)`;
  const lines = [
    `${hosts} hosts, ${destinations} may be destinations; ${movable} of ${cluster.V} VMs may move${share}`,
    ...counts.map(([code, vms]) => `${count(vms, 'VM')} may not move: ${meaningOf(code)} (${code})`),
    ...hostLines(hostGrounds).concat(hardwareLines(snapshot, options)),
    ...snapshot.scores.policies.flatMap(({ policy, sizes }) =>
      sizes === undefined ? [] : [`policy ${policy}: ${sizesText(sizes)}${sizes.named ? '' : `. ${SIZES_REMEDY}`}`],
    ),
    ...skipped.map(({ policy, reason }) => `policy ${policy.name} skipped: ${reason?.text ?? ''}`),
  ];
  const { state, code, remedy } = verdictOf(observed, options, refused);
  return [
    ...problems,
    finding(state, code, title, { text: lines.join('\n'), remedy, detail }),
    ...sums(snapshot, title),
  ];
}

type Verdict = Pick<CheckFinding, 'state' | 'code'> & { readonly remedy?: string };

/** Whether anything in the aggregate can move. */
function verdictOf(
  { cluster, vmGrounds, hostGrounds, judged }: ReturnType<typeof observe>,
  { balance }: CompleteEngineOptions,
  refused: ReadonlyMap<ReasonCode, number>,
): Verdict {
  const failed = (code: string, remedy: string): Verdict => ({ state: 'failed', code, remedy });
  const warning = (code: string, remedy: string): Verdict => ({ state: 'warning', code, remedy });
  if (cluster.H === 0)
    return failed('aggregate-empty', 'There is nothing to balance. Add hosts, or correct [engine] aggregates.');
  if (cluster.H === 1) return failed('aggregate-one-host', 'A move needs a second host in the same aggregate.');
  if (balance && judged.length > 0 && judged.every(({ reason }) => reason !== null))
    return failed('policies-skipped', 'No policy takes part, so nothing is ever balanced. Correct the policies above.');
  if (cluster.H === hostGrounds.size)
    return warning('no-destination', 'No host may be a destination now. Enable hosts, or wait until they are up.');
  if (cluster.V === 0) return warning('no-vms', 'There is no VM to move now.');
  const unseen = refused.get('vm-no-profile') ?? 0;
  const stuck = cluster.V === vmGrounds.size;
  if (stuck && unseen > 0)
    return failed(
      'nothing-can-move',
      'No VM can ever move under these policies. Correct vm_profile_query and its labels, or set vm_profile_fallback: flavor_vcpu_ratio.',
    );
  if (stuck) return warning('nothing-movable', 'No VM can move now. The reasons are above.');
  if (unseen > cluster.V / 2)
    return warning('few-profiles', 'Most VMs have no sample. Check vm_profile_query and the exporter.');
  return { state: 'ok', code: 'aggregate' };
}

const HARDWARE_NOTES = new Set([
  'host-cells-unknown',
  'host-cells-unread',
  'ports-unread',
  'ports-unseen',
  'server-cells-unread',
]);

/** The unknown facts about hardware, and the generations of CPUs between which VMs move one way only. */
function hardwareLines(snapshot: Snapshot, { cpuCompatibility }: CompleteEngineOptions): string[] {
  const cells = snapshot.notes.flatMap(({ code, text }) => (HARDWARE_NOTES.has(code) ? [text] : []));
  const generations = cpuCompatibility === 'ignore' ? [] : generationsOf(snapshot);
  return [...cells, ...generations.filter(({ closed }) => closed > 0).map(generationText)];
}

/** One finding per policy whose VMs do not add up to their hosts. */
const sums = ({ profileSums = [] }: Snapshot, title: string): CheckFinding[] =>
  profileSums.flatMap((one) => {
    // Status tells it; it is no mistake of the configuration.
    if (one.cause === 'load-without-vm') return [];
    const { text, remedy } = profileWords(one);
    const detail = { ratio: one.ratio, host: one.host, sum: one.sum, value: one.value, cause: one.cause };
    return finding('warning', 'profile-sum', `policy ${one.policy} in ${title}`, { text, remedy, detail });
  });

function unknownAggregate(aggregates: readonly string[]): string {
  const names = [...aggregates].sort().join(', ') || 'none';
  return `Correct [engine] aggregates; Nova has: ${names}. A renamed aggregate starts without history.`;
}

function hostLines(grounds: ReadonlyMap<string, { readonly code: ReasonCode }>): string[] {
  const byCode = new Map<ReasonCode, string[]>();
  for (const [host, { code }] of grounds) byCode.set(code, [...(byCode.get(code) ?? []), host]);
  return [...byCode].map(([code, hosts]) => `no destination: ${some(hosts)}: ${meaningOf(code)} (${code})`);
}
