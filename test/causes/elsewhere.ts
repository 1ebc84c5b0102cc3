import type { CauseCode } from '@kronos/status/causes';

const JUDGE = 'libs/status/src/judge.unit.test.ts';

/**
 * The tests that hold the causes without a row in the table: no fault of the simulated cloud makes them, or hours, replicas or cells
 * are needed.
 */
export const elsewhere: Partial<Record<CauseCode, readonly [file: string, test: string]>> = {
  'nats-unreachable': [JUDGE, 'NATS does not answer'],
  'nats-refused': [JUDGE, 'NATS refuses the credentials of this command'],
  'not-provisioned': [JUDGE, 'the streams are missing'],
  'log-in-doubt': [JUDGE, 'a log that is in doubt is one alarm'],
  'checkpoint-wrong': [JUDGE, 'a service started from a wrong checkpoint'],
  'stream-full': [JUDGE, 'the work queue has no room'],
  'event-unreadable': [JUDGE, 'an event cannot be read'],
  'event-skipped': [JUDGE, 'a custodian skipped an event that nobody could read'],
  'services-unknown': [JUDGE, 'heartbeats cannot be read'],
  'service-unready': [JUDGE, 'a check does not pass'],
  'options-conflict': [JUDGE, 'of planners with different options the one that yields is named'],
  'sink-failing': [JUDGE, 'a receiver refuses notifications'],
  'replica-lost': [JUDGE, 'one of two replicas ended'],
  'replicas-differ': [JUDGE, 'says what is worth knowing and is well nevertheless'],
  'versions-differ': [JUDGE, 'an upgrade is half done'],
  'snapshot-none': [JUDGE, 'nothing was ever observed'],
  'snapshot-late': [JUDGE, 'no snapshot comes'],
  'snapshot-undecided': [JUDGE, 'snapshots are not decided'],
  'snapshot-unjudged': [JUDGE, 'an older scorer says nothing about hosts'],
  'host-unknown': [JUDGE, 'a host is in an unknown state'],
  'policy-answer-partial': [JUDGE, 'a store of Prometheus is away'],
  'policy-profile-sum': ['test/causes/profiles.unit.test.ts', 'are one alarm with the likely cause: %s'],
  'policy-sizes-assumed': ['test/causes/profiles.unit.test.ts', 'are scaled by what Placement says'],
  'predictions-off': [JUDGE, 'hosts do not change with the moves'],
  'foreign-move': [JUDGE, 'names the VM that others moved, and is well'],
  'foreign-moves': [JUDGE, 'others moved several VMs'],
  'snapshot-stored-late': [JUDGE, 'a snapshot takes long to store'],
  'decision-slow': [JUDGE, 'a decision takes longer than the interval'],
  'decision-note': [JUDGE, 'a decision that knows what it does (%s) raises no alarm'],
  'plan-undispatched': [JUDGE, 'tasks are not queued'],
  'plan-expired': [JUDGE, 'a plan has passed its deadline with an open move'],
  'task-unstarted': [JUDGE, 'moves are not started'],
  'move-long': [JUDGE, 'a move does not end'],
  'move-poisonous': [JUDGE, 'crashes its executors: an alarm from the second try on'],
  'abort-refused': [JUDGE, 'cannot be aborted: an alarm at once, in the words of Nova'],
  'abort-unanswered': [JUDGE, 'an abort has no effect'],
  'close-waits': [JUDGE, 'a close waits for Nova'],
  'resize-late': [JUDGE, 'a server stays in VERIFY_RESIZE'],
  'drain-blocked': [JUDGE, 'is an alarm when its service cannot be changed, or when no executor has changed it'],
  'wait-long': ['libs/status/src/waits.unit.test.ts', 'is an alarm that names what is waited for and what to do'],
};
