import {
  clause,
  failoverText,
  foreignText,
  INTERVAL_GRACE_MS,
  type Reason,
  type Stuck,
  some,
  streamNames,
} from '@kronos/contracts';
import { remedyOfReason } from '@kronos/facts';
import {
  brokenHosts,
  inFlight,
  lateResizes,
  notAfterMs,
  optionsOf,
  type PlanFacts,
  type PredictionsOff,
  pauseInForce,
  predictionsOff,
  remedyOf,
  skipText,
  type TaskFacts,
  undispatched,
} from '@kronos/projections';
import type { Place } from './causes.ts';
import { cellStage } from './cells.ts';
import type { AggregateInput, Facts, NewestSnapshot, StreamFacts } from './facts.ts';
import type { Finding } from './finding.ts';
import { serviceFindings } from './serviceFindings.ts';
import { snapshotFindings } from './snapshotFindings.ts';
import { span, when } from './times.ts';
import { lateWaits, type WaitCode, waitWords } from './waits.ts';

/** A move that nobody started this long after it could be is a sign that no executor works. */
const UNSTARTED_MS = 120_000;
/** An attempt that runs for longer is followed by nobody, or Nova is stuck. */
const LONG_RUNNING_MS = 4 * 3_600_000;
/** If an abort has had no effect for this time, Nova refused it or no executor follows the move. */
const ABORT_MS = 120_000;
/** Released tasks reach the queue at once. */
const DISPATCH_MS = 60_000;
/** A stream with less room than this share of its limit refuses large messages. */
const FULL = 0.98;
const FILLING = 0.8;

const LOG_STREAM = streamNames.log;
/** Reason of findings about a host that receives no VM, and about what its failures did. */
const BROKEN = 'host-broken';

/** Everything that is not as it must be, in no particular order. Pure. */
export function findings(facts: Facts): Finding[] {
  const { nats } = facts;
  if (nats.state !== 'ok') return [natsFinding(nats.state, nats.text)];
  return [
    // Services first: a refusal in the server's words says more than a figure.
    ...serviceFindings(facts),
    ...facts.streams.flatMap(streamFindings),
    ...clockFindings(facts),
    ...facts.aggregates.flatMap((input) => aggregateFindings(input, facts.nowMs)),
  ];
}

function natsFinding(state: Exclude<Facts['nats']['state'], 'ok'>, text: string): Finding {
  const code = {
    unreachable: 'nats-unreachable',
    refused: 'nats-refused',
    unavailable: 'jetstream-unavailable',
    notProvisioned: 'not-provisioned',
  } as const;
  return { code: code[state], place: {}, about: 'NATS', text };
}

function streamFindings({ stream, bytes, maxBytes, discard }: StreamFacts): Finding[] {
  if (maxBytes <= 0 || discard === 'old' || bytes <= FILLING * maxBytes) return [];
  const place = { stream };
  const percent = `${Math.floor((bytes / maxBytes) * 100)} %`;
  if (bytes < FULL * maxBytes)
    return [
      {
        code: 'stream-filling',
        place,
        about: stream,
        text: `is ${percent} full; a full stream accepts no messages`,
      },
    ];
  return [
    stream === LOG_STREAM
      ? { code: 'log-full', place, about: stream, text: `the event log is ${percent} full: nothing is planned` }
      : { code: 'stream-full', place, about: stream, text: `is ${percent} full: it accepts no messages` },
  ];
}

/** Whether this reader's clock, and those of the services, agree with the server's. */
function clockFindings({ aggregates, services, nowMs, maxClockSkewMs }: Facts): Finding[] {
  const heartbeats = services.known ? services.heartbeats : [];
  const stamps = [...heartbeats, ...aggregates.flatMap(({ newest }) => newest ?? [])].map((one) => one.storedAtMs);
  const aheadMs = Math.max(Number.NEGATIVE_INFINITY, ...stamps) - nowMs;
  const local: Finding[] =
    aheadMs > maxClockSkewMs
      ? [
          {
            code: 'local-clock',
            place: {},
            about: 'this machine',
            text: `its clock is at least ${span(aheadMs)} behind the NATS server's`,
          },
        ]
      : [];
  return [
    ...local,
    ...heartbeats.flatMap(({ service, instance, timeMs, storedAtMs }): Finding[] =>
      // A late stamp is no proof: the report may have waited for NATS. Of a slow clock its own service says so.
      timeMs - storedAtMs <= maxClockSkewMs
        ? []
        : [
            {
              code: 'clock-skew',
              place: { instance },
              about: `${service} ${instance}`,
              text: `its clock is ${span(timeMs - storedAtMs)} ahead of the NATS server's, more than max_clock_skew`,
            },
          ],
    ),
  ];
}

function aggregateFindings(input: AggregateInput, nowMs: number): Finding[] {
  const { aggregate, state, newest } = input;
  return [
    ...observation(input, nowMs),
    ...(newest === null ? [] : snapshotFindings(aggregate, judged(newest, input.beforeMoves), state.drains)).filter(
      isNews(state),
    ),
    ...decisions(input, nowMs),
    ...predictions(input),
    ...moves(input, nowMs),
    ...waits(input, nowMs),
  ];
}

/** Sums of VMs that are further from those of their hosts than by this factor do not come from a move. */
const BY_A_MOVE = 10;

/** The snapshot with the sums of VMs that can be judged: while samples of moves arrive, the last ones before count. */
function judged(newest: NewestSnapshot, beforeMoves: AggregateInput['beforeMoves']): NewestSnapshot {
  if (beforeMoves === null) return newest;
  const policies = newest.policies.map((one) => {
    const ratio = one.profileSum?.ratio ?? 1;
    if (ratio > BY_A_MOVE || ratio < 1 / BY_A_MOVE) return one;
    return { ...one, profileSum: beforeMoves.find(({ policy }) => policy === one.policy)?.profileSum };
  });
  return { ...newest, policies };
}

/** Whether a finding of the newest snapshot says more than what Kronos itself does just now. */
const isNews =
  (state: AggregateInput['state']) =>
  ({ code }: Finding): boolean =>
    // The planner repairs such groups, or says why it cannot.
    code !== 'group-broken' || !optionsOf(state).enforceHardAffinity;

/** Checks that each interval has a snapshot, and a decision on it. */
function observation({ aggregate, state, newest, undecidedSinceMs }: AggregateInput, nowMs: number): Finding[] {
  const place = { service: 'scorer', aggregate, stream: streamNames.snapshots };
  if (newest === null) return [{ code: 'snapshot-none', place, about: aggregate, text: 'has no snapshot yet' }];
  const found: Finding[] = [];
  const intervalMs = newest.intervalSeconds * 1000;
  const ageMs = nowMs - newest.storedAtMs;
  if (ageMs > 2 * intervalMs + INTERVAL_GRACE_MS)
    found.push({
      code: 'snapshot-late',
      place,
      about: aggregate,
      text: `the newest snapshot is ${span(ageMs)} old, and one is due every ${span(intervalMs)}`,
    });
  if (undecidedSinceMs !== null && nowMs - undecidedSinceMs > intervalMs + INTERVAL_GRACE_MS)
    found.push({
      code: 'snapshot-undecided',
      place: { service: 'planner', aggregate },
      about: aggregate,
      text: `no snapshot was decided since ${when(undecidedSinceMs, nowMs)}; ${state.decided === null ? 'there is no decision yet' : `the last decision is of ${when(state.decided.snapshotMs, nowMs)}`}`,
    });
  return found;
}

function decisions(input: AggregateInput, nowMs: number): Finding[] {
  const { aggregate, state, lastDecision } = input;
  const found: Finding[] = [];
  const { unreadable } = state;
  if (unreadable !== null)
    found.push({
      code: 'event-unreadable',
      place: { aggregate, event: String(unreadable.sequence) },
      about: aggregate,
      text: `event ${unreadable.sequence} (${unreadable.claimedType} version ${unreadable.claimedVersion ?? '?'}) cannot be read: ${unreadable.problem}. Nothing is planned`,
      remedy: `${remedyOf(unreadable)}.`,
    });
  if (state.skips.length > 0)
    found.push({
      code: 'event-skipped',
      place: { aggregate },
      about: aggregate,
      text: `unreadable events were skipped: ${state.skips.map(skipText).join('; ')}`,
    });
  for (const { id, release } of undispatched(state))
    if (release !== null && nowMs - release.atMs > DISPATCH_MS)
      found.push({
        code: 'plan-undispatched',
        place: { service: 'planner', aggregate, plan: id, stream: streamNames.migrations },
        about: aggregate,
        text: `the tasks of ${id} are not on the queue ${span(nowMs - release.atMs)} after the release`,
      });
  return lastDecision === null ? found : [...found, ...impossible(input, lastDecision, nowMs)];
}

/** Obstacles that one sentence names. */
const OBSTACLES = 3;

/** VMs that cannot leave one host for one reason. */
const alikeOf = (stuck: readonly Stuck[]): Stuck[][] => [
  ...Map.groupBy(stuck, ({ host, reason }) => JSON.stringify([host, reason.code])).values(),
];

/** The obstacles of VMs differ where the reason is one: each is said with the VMs that it holds. */
const stuckText = (alike: readonly Stuck[]): string => {
  const held = [...Map.groupBy(alike, ({ reason }) => reason.text)].map(
    ([text, them]) =>
      `${some(them.map(({ serverName }) => serverName))} cannot leave ${them[0]?.host ?? ''}: ${clause(text)}`,
  );
  const most = held.slice(0, OBSTACLES);
  return held.length > most.length
    ? `${most.join('; ')}; ${held.length - most.length} more obstacles`
    : most.join('; ');
};

/** Where a VM is stuck, and by what; or the broken host that is the cause: the failure that quarantined the VM counted for it too. */
function stuckPlace(
  { aggregate, state }: AggregateInput,
  { host, serverId, reason }: Stuck,
  broken: readonly { readonly host: string }[],
): Place {
  const failedMs = reason.code === 'vm-quarantined' ? state.vmFailures.get(serverId)?.atMs : undefined;
  const cause =
    failedMs === undefined ? undefined : broken.find((one) => state.hostFailures.get(one.host)?.includes(failedMs));
  return cause === undefined
    ? { aggregate, host, reason: reason.code, server: serverId }
    : { aggregate, host: cause.host, reason: BROKEN, server: serverId };
}

/** Findings about moves that the last decision could not make. */
function impossible(
  input: AggregateInput,
  { stuck, warnings, failover, foreign }: NonNullable<AggregateInput['lastDecision']>,
  nowMs: number,
): Finding[] {
  const { aggregate, state } = input;
  const hostsOut = brokenHosts(state, nowMs, optionsOf(state));
  const found: Finding[] = [];
  // Their reasons are in the warning about the group.
  const broken = new Set(
    warnings.filter(({ code }) => code === 'repair-impossible').map(({ detail }) => detail?.group),
  );
  const others = stuck.filter(({ reason: { detail } }) => detail?.group === undefined || !broken.has(detail.group));
  for (const alike of alikeOf(others)) {
    const text = stuckText(alike);
    for (const one of alike)
      found.push({
        code: 'server-stuck',
        place: stuckPlace(input, one, hostsOut),
        about: aggregate,
        text,
        remedy: remedyOfReason(one.reason.code),
      });
  }
  if (foreign !== undefined)
    found.push({
      code: foreign.stayUntil === undefined ? 'foreign-moves' : 'foreign-move',
      place: { aggregate },
      about: aggregate,
      text: foreignText(foreign),
    });
  if (failover !== undefined && failover.lacking > 0)
    found.push({
      code: 'failover-room',
      place: { aggregate },
      about: aggregate,
      text: failoverText(failover),
    });
  for (const warning of warnings) {
    const { group } = warning.detail ?? {};
    const members =
      warning.code === 'repair-impossible' && group !== undefined
        ? stuck.filter(({ reason }) => reason.detail?.group === group)
        : [];
    found.push(ofWarning(aggregate, warning, members));
  }
  return found;
}

/** Warnings of what a decision does knowingly, or does in the next cycle: nobody has to act. */
const NOTES: ReadonlySet<string> = new Set([
  'budget-used',
  'soft-rule-broken',
  'past-threshold',
  'no-forecast',
  'forecast-late',
  'forecast-unearned',
  'expected-to-pass',
  'expected-to-return',
]);

/** @param stuck what keeps the group from being repaired */
function ofWarning(aggregate: string, { code, text, detail = {} }: Reason, stuck: readonly Stuck[]): Finding {
  const named = (key: string): string | undefined => {
    const value = detail[key];
    return typeof value === 'string' ? value : undefined;
  };
  const [server, host, group, policy] = ['server', 'host', 'group', 'policy'].map(named);
  if (code === 'threshold-unreachable' && policy !== undefined)
    return { code, place: { aggregate, policy }, about: aggregate, text };
  const place = {
    aggregate,
    reason: code,
    ...(server === undefined ? {} : { server }),
    ...(host === undefined ? {} : { host }),
    ...(group === undefined ? {} : { group }),
  };
  if (NOTES.has(code)) return { code: 'decision-note', place, about: aggregate, text };
  const why = alikeOf(stuck).map(stuckText).join('; ');
  return {
    code: 'decision-warning',
    place,
    about: aggregate,
    text: why === '' ? text : `${text.replace(/\.$/, '')}: ${why}`,
    remedy: remedyOfReason(stuck[0]?.reason.code ?? code),
  };
}

/** Waits that have a finding of their own. */
const FOUND_ELSEWHERE: ReadonlySet<WaitCode> = new Set(['executor', 'planner', 'service']);

function waits({ aggregate, state }: AggregateInput, nowMs: number): Finding[] {
  return lateWaits(state, nowMs).flatMap(({ about, wait }): Finding[] => {
    const { code, sinceMs } = wait;
    if (FOUND_ELSEWHERE.has(code) || (code === 'migration' && nowMs - sinceMs > LONG_RUNNING_MS)) return [];
    const { text, remedy } = waitWords(aggregate, about, wait);
    const { kind, id } = about;
    return [
      {
        code: 'wait-long',
        place: { aggregate, wait: `${code} ${wait.of}`, ...(kind === 'drain' ? { host: id } : { [kind]: id }) },
        about: kind === 'drain' ? id : aggregate,
        text: `${kind === 'drain' ? `the drain of ${id}` : `${kind} ${id}`} waits for ${text} since ${when(sinceMs, nowMs)}, longer than expected`,
        remedy,
      },
    ];
  });
}

const PREDICTION_REMEDIES: Readonly<Record<PredictionsOff['cause'], string>> = {
  'wrong-label':
    'Correct vm_profile_label or vm_profile_label_type; `kronos config check` shows the labels that the series have.',
  'host-sizes':
    'Correct host_size_query, or set it: the size of a host times its speed; `kronos explain plan` shows the hosts.',
  'load-depends-on-host':
    'Make vm_profile_query the share of its own host that a VM uses; `kronos explain plan` shows the hosts and the measured values.',
};

/** Policies whose loads did not follow the predictions. */
function predictions({ aggregate, state }: AggregateInput): Finding[] {
  return predictionsOff(state).map((off): Finding => {
    const [worst] = off.hosts;
    const where =
      worst === undefined
        ? `the values of hosts differ by ${off.error.toFixed(3)} in the median`
        : `${worst.host} ${worst.gains ? 'gains' : 'loses'} ${worst.part.toFixed(2)} times what was predicted`;
    return {
      code: 'predictions-off',
      place: { aggregate, policy: off.policy, reason: off.cause },
      about: `policy ${off.policy} in ${aggregate}`,
      text: `ten minutes after moves, ${where} (${off.comparisons} comparisons): ${off.text}`,
      remedy: PREDICTION_REMEDIES[off.cause],
    };
  });
}

/** Findings about waits and ends of moves and drains. */
function moves(input: AggregateInput, nowMs: number): Finding[] {
  const { aggregate, state } = input;
  const open = inFlight(state);
  return [
    ...expiredPlans(input, nowMs),
    ...open.flatMap((task) => moveFindings(aggregate, task, nowMs)),
    ...lateResizes(state, nowMs).map((late) => resizeFinding(aggregate, late, nowMs)),
    ...damagedServers(input),
    ...unstarted(input, open, nowMs),
    ...blockedDrains(input, nowMs),
    ...brokenHosts(state, nowMs, optionsOf(state)).map(({ host, untilMs }) => ({
      code: 'host-broken' as const,
      place: { aggregate, host, reason: BROKEN },
      about: host,
      text: `receives no VM until ${when(untilMs, nowMs)}: too many moves to it failed`,
    })),
  ];
}

const executorOf = (aggregate: string) => ({ service: 'executor', aggregate }) as const;

function expiredPlans({ aggregate, state }: AggregateInput, nowMs: number): Finding[] {
  const isExpired = (plan: PlanFacts): boolean => {
    const lastMs = notAfterMs(plan);
    return lastMs !== null && nowMs > lastMs && plan.tasks.some((id) => state.tasks.get(id)?.end === null);
  };
  return [...state.plans.values()].filter(isExpired).map((plan) => ({
    code: 'plan-expired',
    place: { ...executorOf(aggregate), plan: plan.id },
    about: aggregate,
    text: `${plan.id} has expired, but not all of its moves have ended`,
  }));
}

/** Why a close has not ended its task. */
function closeWait(
  text: string,
  { force }: NonNullable<TaskFacts['closeAsked']>,
  refused: NonNullable<TaskFacts['slot']>['abortRefused'],
): Pick<Finding, 'text' | 'remedy'> {
  const counts = 'the move counts towards the limits';
  if (force === true)
    return {
      text: `${text}, with --force: neither an executor nor a planner has ended the task; ${counts}`,
      remedy: 'Look at the logs of the executor and of the planner for the task id.',
    };
  const said = refused === null ? '' : `, and refused to abort it: ${refused.text} (${refused.status})`;
  return { text: `${text}: Nova has not shown that it no longer works on the VM${said}; ${counts}` };
}

/** Findings about a move that was released and has not ended. */
function moveFindings(aggregate: string, task: TaskFacts, nowMs: number): Finding[] {
  const { slot } = task;
  if (slot === null) return [];
  const name = `${task.step.serverName} (${task.id})`;
  const place = { ...executorOf(aggregate), task: task.id, server: task.step.serverId };
  const found: Finding[] = [];
  const add = (code: Finding['code'], text: string) => found.push({ code, place, about: aggregate, text });
  const { abortRefused: refused, suspected } = slot;
  if (refused !== null)
    add(
      'abort-refused',
      `Nova refused to abort ${name} at ${when(refused.atMs, nowMs)}: ${refused.text} (${refused.status})`,
    );
  // The first try alone proves nothing: other tasks may have crashed the executor before it.
  if (suspected !== null && suspected.tries > 1)
    add(
      'move-poisonous',
      `${name} crashed its executor in isolation: try ${suspected.tries} started at ${when(suspected.atMs, nowMs)}`,
    );
  const { closeAsked: closed } = task;
  if (closed !== null && nowMs - closed.atMs > ABORT_MS) {
    const text = `the close of ${name} by ${closed.by} has waited ${span(nowMs - closed.atMs)}`;
    found.push({ code: 'close-waits', place, about: aggregate, ...closeWait(text, closed, refused) });
  }
  const asked = task.abortAsked ?? task.cancelAsked;
  if (asked !== null && nowMs - asked.atMs > ABORT_MS)
    add('abort-unanswered', `${name} still migrates ${span(nowMs - asked.atMs)} after the abort request`);
  if (nowMs - slot.startedAtMs > LONG_RUNNING_MS)
    add('move-long', `${name} has been migrating since ${when(slot.startedAtMs, nowMs)}`);
  if (slot.forced) add('move-forced', `${name} was forced past the scheduler`);
  return found;
}

const resizeFinding = (
  aggregate: string,
  { task, host, sinceMs }: ReturnType<typeof lateResizes>[number],
  nowMs: number,
): Finding => ({
  code: 'resize-late',
  place: { ...executorOf(aggregate), task: task.id, server: task.step.serverId },
  about: aggregate,
  text: `${task.step.serverName} (${task.id}) has been in VERIFY_RESIZE on ${host} since ${when(sinceMs, nowMs)}: it ${cellStage(task).text}`,
  remedy: `Check the guest, then run \`kronos cells confirm ${task.id}\` or \`kronos cells revert ${task.id}\`.`,
});

const damagedServers = ({ aggregate, state }: AggregateInput): Finding[] =>
  [...state.damaged.values()].map(({ serverId, serverName, taskId, from, destination, host, reasons }) => ({
    code: 'server-in-error',
    place: { aggregate, server: serverId, task: taskId },
    about: aggregate,
    text: `${serverName} is in ERROR on ${host ?? 'an unknown host'} after its move from ${from} to ${destination} (${taskId}): ${reasons[0]?.text ?? 'no reason is known'}`,
  }));

function unstarted({ aggregate, state }: AggregateInput, open: readonly TaskFacts[], nowMs: number): Finding[] {
  const idle = open.length > 0 && open.every((task) => task.slot === null && nowMs - task.notBeforeMs > UNSTARTED_MS);
  if (!idle || pauseInForce(state) !== null) return [];
  const text = `no move has started ${span(UNSTARTED_MS)} after it was due`;
  return [{ code: 'task-unstarted', place: executorOf(aggregate), about: aggregate, text }];
}

/** Drains whose host cannot be disabled or enabled. */
function blockedDrains({ aggregate, state }: AggregateInput, nowMs: number): Finding[] {
  const paused = pauseInForce(state);
  return [...state.drains.values()].flatMap((drain): Finding[] => {
    const { host, asked, undrainAsked, disabled, claim, failure } = drain;
    const act = disabled === null ? 'disabled' : 'enabled';
    const sinceMs = disabled === null ? asked.atMs : (undrainAsked?.atMs ?? nowMs);
    const place = { code: 'drain-blocked', place: { aggregate, host }, about: host } as const;
    if (failure !== null) {
      const status = failure.status === null ? '' : ` (${failure.status})`;
      return [{ ...place, text: `its service cannot be ${act}${status}: ${failure.text}` }];
    }
    if (claim !== null || paused !== null || nowMs - sinceMs <= UNSTARTED_MS) return [];
    return [{ ...place, text: `no executor has ${act} its service ${span(nowMs - sinceMs)} after the request` }];
  });
}
