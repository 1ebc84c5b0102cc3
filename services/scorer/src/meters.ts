/** The metrics and log lines of a snapshot. */
import { queryUses, readingOf, type Snapshot, summaryOf, timeMs } from '@kronos/contracts';
import type { KeepServers, ListPart, ReadDuration } from '@kronos/observation';
import type { Instruments, Logger } from '@kronos/telemetry';

const partLabels = {
  aggregates: 'aggregates',
  services: 'services',
  hypervisors: 'hypervisors',
  servers: 'servers',
  serverGroups: 'server_groups',
  migrations: 'migrations',
} as const satisfies Record<ListPart, string>;

/** Records how long the reads of one observation took. */
export function measureReads(metrics: Instruments, durations: readonly ReadDuration[]): void {
  for (const duration of durations) {
    const seconds = duration.milliseconds / 1000;
    if (duration.of === 'query') metrics.queryDuration.record(seconds, { query: duration.use });
    else {
      const outcome = duration.ok ? 'read' : 'failed';
      metrics.collectDuration.record(seconds, { part: partLabels[duration.part], outcome });
    }
  }
}

/** Counts and logs the reads of the inventory that neither the cycle nor a change asked for. */
export const showResync =
  (metrics: Instruments, log: Logger): KeepServers['onResync'] =>
  (reason, { host, server }) => {
    metrics.inventoryResyncs.add(1, { reason });
    const what = host ?? server ?? 'every server';
    log.info({ reason, host, server }, `read again from Nova (${reason}): ${what}`);
  };

/** Sets the figures of one snapshot; `hosts`: also those of each host. */
export function measure(metrics: Instruments, snapshot: Snapshot, options: { readonly hosts: boolean }): void {
  const summary = summaryOf(snapshot);
  measurePolicies(metrics, snapshot, summary, options);
  measureServers(metrics, snapshot, summary);
  for (const { code } of snapshot.problems)
    metrics.observationProblems.add(1, { aggregate: snapshot.aggregate, reason: code });
  measureLabels(metrics, snapshot);
  countAnswers(metrics, snapshot);
}

function measurePolicies(
  metrics: Instruments,
  { aggregate, scores }: Snapshot,
  { policies }: ReturnType<typeof summaryOf>,
  options: { readonly hosts: boolean },
): void {
  for (const { policy, participates, imbalance, threshold } of scores.policies) {
    metrics.policyParticipates.set(participates ? 1 : 0, { aggregate, policy });
    metrics.threshold.set(threshold, { aggregate, policy });
    // NaN: an old figure must not stand for one that is not known.
    metrics.imbalance.set(imbalance ?? Number.NaN, { aggregate, policy });
  }
  if (options.hosts)
    metrics.hostValue.replace(
      aggregate,
      scores.policies.flatMap(({ policy, hosts: values }) =>
        Object.entries(values).map(([host, { raw }]) => ({ value: raw, labels: { aggregate, host, policy } })),
      ),
    );
  metrics.combinedImbalance.set(scores.combined ?? Number.NaN, { aggregate });
  for (const { policy, matchedHosts, matchedServers } of policies) {
    // NaN: a policy without the query matches nothing on purpose.
    metrics.policyMatched.set(matchedHosts ?? Number.NaN, { aggregate, policy, kind: 'host' });
    metrics.policyMatched.set(matchedServers ?? Number.NaN, { aggregate, policy, kind: 'server' });
  }
}

/** Hosts and servers, and how old the listings of the hosts are. */
function measureServers(
  metrics: Instruments,
  snapshot: Snapshot,
  { outOfService = [] }: ReturnType<typeof summaryOf>,
): void {
  const { aggregate, hosts } = snapshot;
  const out = { disabled: 0, down: 0, unknown: 0 };
  for (const { state, count } of outOfService) out[state === 'forcedDown' ? 'down' : state] += count;
  const up = hosts.length - out.disabled - out.down - out.unknown;
  for (const [state, count] of Object.entries({ up, ...out }))
    metrics.hosts.set(count, { aggregate, state: state as 'up' | keyof typeof out });
  metrics.servers.set(snapshot.servers.length, { aggregate });
  const checked = hosts.flatMap(({ listing }) => (listing === undefined ? [] : [timeMs(listing.checkedAt)]));
  const ageMs = timeMs(snapshot.time) - Math.min(...checked);
  metrics.inventoryAge.set(checked.length === 0 ? Number.NaN : Math.max(0, ageMs) / 1000, { aggregate });
  const sources = { api: 0, changes: 0, notifications: 0 };
  for (const { listing } of hosts) if (listing !== undefined) sources[listing.from]++;
  for (const [source, count] of Object.entries(sources))
    metrics.inventoryHosts.set(count, { aggregate, source: source as keyof typeof sources });
}

function measureLabels(metrics: Instruments, { aggregate, hostReadings, vmReadings }: Snapshot): void {
  const unmatched = (counts: readonly number[]): number => Math.max(0, ...counts);
  metrics.unmatchedLabels.set(unmatched(hostReadings.map((one) => one.unmatchedLabels.length)), {
    aggregate,
    kind: 'host',
  });
  metrics.unmatchedLabels.set(unmatched(vmReadings.map((one) => one.unmatchedLabels)), {
    aggregate,
    kind: 'vm',
  });
  metrics.unmatchedLabels.set(unmatched(vmReadings.map((one) => one.ambiguousLabels)), {
    aggregate,
    kind: 'vm_ambiguous',
  });
}

function countAnswers(metrics: Instruments, snapshot: Snapshot): void {
  for (const policy of snapshot.policies.filter((one) => one.enabled)) {
    for (const use of queryUses) {
      const reading = readingOf(snapshot, policy, use);
      if (reading !== undefined) metrics.answers.add(1, { policy: policy.name, query: use, health: reading.health });
    }
  }
}

/** One line per snapshot; its problems and the policies that take no part as lines of their own. */
export function logSnapshot(log: Logger, snapshot: Snapshot, outcome: 'published' | 'duplicate'): void {
  const { aggregate, id: snapshotId, scores, problems, notes } = snapshot;
  for (const reason of problems)
    log.warn({ aggregate, snapshotId, reason }, `the snapshot cannot be planned: ${reason.text}`);
  for (const { policy, reason } of scores.policies) {
    if (reason !== null)
      log.warn({ aggregate, snapshotId, policy, reason }, `policy ${policy} is skipped: ${reason.text}`);
  }
  for (const reason of notes) log.debug({ aggregate, snapshotId, reason }, reason.text);
  log.info(
    {
      aggregate,
      snapshotId,
      purpose: snapshot.purpose,
      hosts: snapshot.hosts.length,
      servers: snapshot.servers.length,
      combined: scores.combined,
      detected: scores.policies.filter((one) => one.detected).map((one) => one.policy),
      problems: problems.map((one) => one.code),
    },
    outcome === 'published' ? 'snapshot taken' : 'snapshot was there already',
  );
}
