import { RECENT_DRAINS } from '@kronos/projections';
import type { Operation } from './schemas.ts';

export const PREFIX = '/api/v1';
export const DEFAULT_LIMIT = 100;
export const MAX_LIMIT = 1000;
/** Snapshots that one what-if decides at most. */
export const MOST_SNAPSHOTS = 720;

/** Hosts of one run of drains at most: as many finished drains are kept. */
export const MOST_DRAINS = RECENT_DRAINS;

type Endpoint = {
  /** Below {@link PREFIX}; `{name}` stands for one percent-encoded segment. */
  readonly path: string;
  readonly summary: string;
  /** Parameters of the query, with their meaning. */
  readonly query?: Readonly<Record<string, string>>;
};

const limit = `Maximum number of entries, 1 to ${MAX_LIMIT} (default ${DEFAULT_LIMIT})`;
const aggregate = 'Only this aggregate';
const snapshot = 'Id of a recorded snapshot (default: the newest one)';
const since = 'A log sequence, or a time in ISO-8601';

/** Every call of the JSON interface: routes are made from this table, and so is the OpenAPI document. */
export const endpoints: Readonly<Record<Operation, Endpoint>> = {
  about: { path: '', summary: 'Version, log sequence and the list of paths' },
  alarms: { path: '/alarms', summary: 'What is wrong, as kronos status judges it, and the heartbeats of the services' },
  regions: { path: '/regions', summary: 'The installations of [console] regions, as their ledgers answer' },
  aggregates: { path: '/aggregates', summary: 'One line per aggregate' },
  fleet: {
    path: '/fleet',
    summary: 'Every aggregate with its hosts by value, its imbalance over 6 hours and the plan that it waits with',
  },
  aggregate: { path: '/aggregates/{name}', summary: 'One aggregate: options, moves in flight, plans, quarantine' },
  imbalance: {
    path: '/aggregates/{name}/imbalance',
    summary:
      'Imbalance over time, one array per quantity, thinned out; the decisions with a plan are all kept. And when the moves of the latest plans started and ended',
    query: {
      since,
      points: 'Approximate number of decisions to keep, 10 to 2880 (default 500)',
      near: 'Id of a snapshot: the decisions near the one about it are all kept',
    },
  },
  hosts: {
    path: '/aggregates/{name}/hosts',
    summary: 'The hosts of a snapshot with their values. 410: the snapshot is no longer kept',
    query: { snapshot },
  },
  picture: {
    path: '/aggregates/{name}/picture',
    summary: 'The hosts of a snapshot with their VMs by weight, to be drawn. 410: the snapshot is no longer kept',
    query: { snapshot },
  },
  vms: {
    path: '/aggregates/{name}/vms',
    summary: 'The VMs of a snapshot, by name. 410: the snapshot is no longer kept',
    query: {
      snapshot,
      host: 'Only VMs on this host',
      id: 'Only the VM with this uuid',
      limit,
      after: '`next` of the page before',
    },
  },
  moves: {
    path: '/aggregates/{name}/moves',
    summary:
      'Attempts to move VMs among the recent events, the newest first: who, from where to where, when, how it ended',
    query: { limit, vm: 'Only the VM with this uuid' },
  },
  vmWhy: {
    path: '/aggregates/{name}/vms/{id}/why',
    summary:
      'Why a VM moves or stays by the last decision, or by the one about a snapshot; it is made again as kronos explain vm does',
    query: { snapshot },
  },
  decision: {
    path: '/aggregates/{name}/decision',
    summary:
      'What the last decision was made of, or the one about a snapshot: a browser makes it again, with other options too',
    query: { snapshot },
  },
  hostDrain: {
    path: '/aggregates/{name}/hosts/{host}/drain',
    summary: 'What a drain of the host would do now, as kronos drain shows it. Nothing is drained',
  },
  drainRun: {
    path: '/aggregates/{name}/drains',
    summary:
      'How far a run of drains in turn is, and what is next in it, by the rule of kronos drain. Nothing is drained',
    query: {
      host: `A host of the run, in its order; can be given ${MOST_DRAINS} times`,
      since: 'The log sequence at its start: earlier drains are not counted (0)',
      parallel: `How many hosts are drained at the same time, 1 to ${MOST_DRAINS} (1)`,
      rolling: '`true`: maintenance follows on each empty host, and the next one is drained when it is enabled again',
    },
  },
  hostValues: {
    path: '/aggregates/{name}/hosts/{host}/values',
    summary: 'Value of a host per policy over time, at most 30 points, as arrays for a chart',
    query: { since: 'A time in ISO-8601 (6 hours ago)' },
  },
  whatIf: {
    path: '/aggregates/{name}/what-if',
    summary: `What would have happened with other options, beside what happened: at most ${MOST_SNAPSHOTS} snapshots, and as many as are decided in 20 s`,
    query: {
      since: 'A time in ISO-8601 (an hour before `until`)',
      until: 'A time in ISO-8601 (now)',
      set: 'OPTION=VALUE, such as engine.cooldown=0; can be given several times',
    },
  },
  plans: {
    path: '/plans',
    summary: 'The plan that waits, running plans, the last ended ones; newest first',
    query: { aggregate, limit },
  },
  plan: {
    path: '/plans/{id}',
    summary: 'One plan, its tasks, the decision that made it, its events',
    query: { sequence: 'Sequence of its decision, for a plan that is older than what is kept in memory' },
  },
  planHosts: {
    path: '/plans/{id}/hosts',
    summary: 'The hosts that a plan changes, before and after it. 410: its snapshot is no longer kept',
    query: { sequence: 'Sequence of its decision, for a plan that is older than what is kept in memory' },
  },
  tasks: {
    path: '/tasks',
    summary: 'Tasks that are not over, oldest first; started ones before those that wait',
    query: { aggregate, limit },
  },
  task: { path: '/tasks/{id}', summary: 'One task and its events' },
  decisions: {
    path: '/decisions',
    summary: 'Outcome, reason and imbalances of the latest 2880 cycles; oldest first',
    query: {
      aggregate: 'Which aggregate; required',
      since,
      limit: 'Maximum number of entries, 1 to 2880 (default 2880)',
    },
  },
  history: {
    path: '/history',
    summary: 'Events in words. Older ones than the latest 10,000 are read from the log, at most 5,000 per request',
    query: { aggregate, since, limit },
  },
  vm: { path: '/vms/{id}', summary: 'Cooldown, quarantine, releases, moves, plans between cells and events of a VM' },
  host: { path: '/hosts/{name}', summary: 'Breaker, drain, slots, moves and events of a host' },
  quarantine: {
    path: '/quarantine',
    summary: 'Every VM in quarantine: cause, since, until, by whom',
    query: { aggregate },
  },
  cooldowns: {
    path: '/cooldowns',
    summary: 'What waits for time to pass: aggregates, VMs that were moved, hosts that are no destinations',
    query: { aggregate, limit },
  },
  search: {
    path: '/search',
    summary: 'Aggregates, hosts, VMs, plans and tasks by name or id, the best fit first; capital letters do not count',
    query: { q: 'Text that a name or an id contains; required', limit },
  },
  runbook: { path: '/runbook/{section}', summary: 'A section of the runbook of this version, in Markdown' },
};

/** Server-sent events, beside the table: their answer is no JSON document. */
export const CHANGES = `${PREFIX}/changes`;
/** Calls of people who are logged in: requests that change something, beside the table. */
export const ACTING = {
  session: `${PREFIX}/session`,
  foresee: `${PREFIX}/commands/preview`,
  give: `${PREFIX}/commands`,
} as const;
export const OPENAPI = `${PREFIX}/openapi.json`;
