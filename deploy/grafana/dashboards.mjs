// Kronos's dashboards for Grafana, as code: `node deploy/grafana/dashboards.mjs` writes dashboards/*.json, and a test keeps them
// equal. Each panel is a title, a kind, a unit and its queries; the layout follows from the order.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PROMETHEUS = { type: 'prometheus', uid: '$prometheus' };
const TRACES = { type: 'jaeger', uid: '$traces' };
const WIDTH = { timeseries: 12, stat: 6, table: 24, traces: 24, 'state-timeline': 24, 'status-history': 24 };
const HEIGHT = { timeseries: 8, stat: 4, table: 8, traces: 16, 'state-timeline': 7, 'status-history': 20 };

/** A query: an expression, and how its series are named. */
const q = (expr, legendFormat = '') => ({ expr, legendFormat });
const panel = (kind, title, unit, queries) => ({ kind, title, unit, queries });
const lines = (title, unit, ...queries) => panel('timeseries', title, unit, queries);
const figure = (title, unit, ...queries) => panel('stat', title, unit, queries);
const states = (title, ...queries) => panel('state-timeline', title, 'short', queries);

/** A row for each series, a colour for each value from 0 to 1. */
const heatMap = (title, ...queries) => panel('status-history', title, 'percentunit', queries);

const traces = (title, target) => ({ kind: 'traces', title, trace: target });
const traceList = (title, target) => ({ kind: 'table', title, trace: target });

const quantile = (share, metric, by, selector = '') =>
  `histogram_quantile(${share}, sum by (le${by === '' ? '' : `, ${by}`}) (rate(${metric}_bucket${selector}[$__rate_interval])))`;

const AGG = '{aggregate=~"$aggregate"}';

const overview = {
  uid: 'kronos-overview',
  title: 'Kronos: overview',
  variables: ['aggregate'],
  panels: [
    figure('Services that answer', 'short', q('sum(up{job=~"kronos-.+"})')),
    figure('Checks that do not pass', 'short', q('count(kronos_ready == 0) or vector(0)')),
    figure('Migrations in flight', 'short', q(`sum(max by (aggregate) (kronos_migrations_in_flight${AGG}))`)),
    figure('Event log, full', 'percentunit', q('max(kronos_log_bytes / kronos_log_max_bytes)')),
    lines(
      'Combined imbalance',
      'short',
      q(`max by (aggregate) (kronos_combined_imbalance_ratio${AGG})`, '{{aggregate}}'),
    ),
    lines(
      'Imbalance above threshold',
      'short',
      q(
        `max by (aggregate, policy) (kronos_imbalance_ratio${AGG}) - max by (aggregate, policy) (kronos_policy_threshold_ratio${AGG})`,
        '{{aggregate}} {{policy}}',
      ),
    ),
    lines(
      'Migrations ended per hour',
      'short',
      q(`sum by (outcome) (rate(kronos_migrations_ended_total${AGG}[$__rate_interval])) * 3600`, '{{outcome}}'),
    ),
    lines(
      'Failures per hour, by type',
      'short',
      q(
        'sum by (error_type) (rate(kronos_migrations_ended_total{aggregate=~"$aggregate", error_type!="none"}[$__rate_interval])) * 3600 or vector(0)',
        '{{error_type}}',
      ),
    ),
    lines(
      'Decisions per hour, by reason',
      'short',
      q(`sum by (reason) (rate(kronos_decisions_total${AGG}[$__rate_interval])) * 3600`, '{{reason}}'),
    ),
    lines(
      'Time of an observation',
      's',
      q(quantile(0.5, 'kronos_cycle_duration_seconds', 'aggregate', AGG), '{{aggregate}} half'),
      q(quantile(0.95, 'kronos_cycle_duration_seconds', 'aggregate', AGG), '{{aggregate}} 95 %'),
    ),
    states(
      'Policies with healthy data',
      q(`min by (aggregate, policy) (kronos_policy_participates${AGG})`, '{{aggregate}} {{policy}}'),
    ),
    states('Paused', q(`max by (aggregate) (kronos_paused${AGG})`, '{{aggregate}}')),
    traceList('Slowest decisions, as traces', {
      queryType: 'search',
      service: 'kronos-planner',
      operation: 'planner.decide',
      limit: 20,
    }),
  ],
};

const ONE = '{aggregate="$aggregate"}';
const aggregate = {
  uid: 'kronos-aggregate',
  title: 'Kronos: one aggregate',
  variables: ['oneAggregate'],
  panels: [
    figure('Hosts up', 'short', q('max(kronos_hosts{aggregate="$aggregate", state="up"})')),
    figure('Servers', 'short', q(`max(kronos_servers${ONE})`)),
    figure('Cooling down', 's', q(`max(kronos_aggregate_cooldown_seconds${ONE})`)),
    figure('Servers in quarantine', 'short', q(`max(kronos_quarantined_servers${ONE})`)),
    states('A plan waits for approval', q(`max by (aggregate) (kronos_plans_waiting${ONE})`, '{{aggregate}}')),
    lines(
      'Imbalance and threshold',
      'short',
      q(`max by (policy) (kronos_imbalance_ratio${ONE})`, '{{policy}}'),
      q(`max by (policy) (kronos_policy_threshold_ratio${ONE})`, '{{policy}} threshold'),
    ),
    lines('Combined imbalance', 'short', q(`max(kronos_combined_imbalance_ratio${ONE})`, 'combined')),
    lines('Moves left until every policy is at its target', 'short', q(`max(kronos_course_moves${ONE})`, 'moves')),
    lines('Time until then', 's', q(`max(kronos_course_seconds${ONE})`, 'about')),
    lines(
      'Decisions per hour, by reason',
      'short',
      q(
        `sum by (outcome, reason) (rate(kronos_decisions_total${ONE}[$__rate_interval])) * 3600`,
        '{{outcome}}: {{reason}}',
      ),
    ),
    lines(
      'Steps planned per hour, by phase',
      'short',
      q(`sum by (phase) (rate(kronos_steps_planned_total${ONE}[$__rate_interval])) * 3600`, '{{phase}}'),
    ),
    lines(
      'Candidates refused, by reason',
      'cps',
      q(`sum by (reason) (rate(kronos_refusals_total${ONE}[$__rate_interval]))`, '{{reason}}'),
    ),
    lines(
      'Servers that should move and cannot',
      'short',
      q(`max by (phase) (kronos_stuck_servers${ONE})`, '{{phase}}'),
    ),
    lines(
      'Migrations: tasks, starts, ends per hour',
      'short',
      q(`sum(rate(kronos_tasks_dispatched_total${ONE}[$__rate_interval])) * 3600`, 'tasks'),
      q(`sum(rate(kronos_migrations_started_total${ONE}[$__rate_interval])) * 3600`, 'starts'),
      q(`sum by (outcome) (rate(kronos_migrations_ended_total${ONE}[$__rate_interval])) * 3600`, '{{outcome}}'),
    ),
    lines(
      'Tasks delayed per hour, by reason',
      'short',
      q(`sum by (reason) (rate(kronos_tasks_held_back_total${ONE}[$__rate_interval])) * 3600`, '{{reason}}'),
    ),
    lines('Hosts by state', 'short', q(`max by (state) (kronos_hosts${ONE})`, '{{state}}')),
    lines(
      'Health of the answers of Prometheus, per hour',
      'short',
      q(
        'sum by (policy, health) (rate(kronos_prometheus_answers_total[$__rate_interval])) * 3600',
        '{{policy}} {{health}}',
      ),
    ),
    lines(
      'Labels that fit no host or no server',
      'short',
      q(`max by (kind) (kronos_unmatched_labels${ONE})`, '{{kind}}'),
    ),
    lines('Hosts out as destinations', 'short', q(`max(kronos_broken_hosts${ONE})`, 'broken')),
    traceList('Decisions of this aggregate, as traces', {
      queryType: 'search',
      service: 'kronos-planner',
      tags: 'kronos.aggregate="$aggregate"',
      limit: 20,
    }),
  ],
};

const migration = {
  uid: 'kronos-migration',
  title: 'Kronos: one migration',
  variables: ['oneAggregate', 'task', 'trace'],
  panels: [
    traceList('Traces of the task (its id stands in kronos plans, in the log and in every log line)', {
      queryType: 'search',
      service: 'kronos-executor',
      tags: 'kronos.task.id="$task"',
      limit: 20,
    }),
    traces('The trace: observed, decided, checked, moved, verified', { query: '$trace' }),
    lines(
      'Time of a migration, from request to end',
      's',
      q(quantile(0.5, 'kronos_migration_duration_seconds', 'outcome', ONE), '{{outcome}} half'),
      q(quantile(0.95, 'kronos_migration_duration_seconds', 'outcome', ONE), '{{outcome}} 95 %'),
    ),
    lines(
      "Time in Nova's queue",
      's',
      q(quantile(0.5, 'kronos_migration_queued_seconds', '', ONE), 'half'),
      q(quantile(0.95, 'kronos_migration_queued_seconds', '', ONE), '95 %'),
    ),
    lines(
      'Memory copied',
      'Bps',
      q(`sum(rate(kronos_migration_memory_bytes_total${ONE}[$__rate_interval]))`, 'copied'),
    ),
    lines('Memory still to copy', 'bytes', q(`sum(kronos_migration_memory_remaining_bytes${ONE})`, 'remaining')),
    lines('In flight', 'short', q(`max(kronos_migrations_in_flight${ONE})`, 'in flight')),
    lines(
      'Deliveries',
      'cps',
      q(`sum by (delivery) (rate(kronos_tasks_received_total${ONE}[$__rate_interval]))`, '{{delivery}}'),
    ),
  ],
};

const JOB = '{job=~"kronos-.+"}';
const services = {
  uid: 'kronos-services',
  title: 'Kronos: services',
  variables: [],
  panels: [
    states('Ready', q(`min by (job, instance) (kronos_ready${JOB})`, '{{job}} {{instance}}')),
    lines(
      'Messages written per hour, by outcome',
      'short',
      q('sum by (job, outcome) (rate(kronos_log_appends_total[$__rate_interval])) * 3600', '{{job}} {{outcome}}'),
    ),
    lines(
      'Events not folded yet',
      'short',
      q('max by (job, instance) (kronos_log_fold_lag_events)', '{{job}} {{instance}}'),
    ),
    lines(
      'Log, sequence folded',
      'short',
      q('max by (job, instance) (kronos_log_fold_sequence)', '{{job}} {{instance}}'),
    ),
    lines('Size of the log', 'bytes', q('max(kronos_log_bytes)', 'bytes'), q('max(kronos_log_max_bytes)', 'limit')),
    lines(
      'Difference to the clock of NATS',
      's',
      q('max by (job, instance) (kronos_clock_skew_seconds)', '{{job}} {{instance}}'),
    ),
    lines(
      'Calls to OpenStack',
      'reqps',
      q(
        'sum by (job, api, status) (rate(kronos_openstack_requests_total[$__rate_interval]))',
        '{{job}} {{api}} {{status}}',
      ),
    ),
    lines(
      'Time of a call to OpenStack, 95 %',
      's',
      q(quantile(0.95, 'kronos_openstack_request_duration_seconds', 'job, api'), '{{job}} {{api}}'),
    ),
    lines(
      'Reading the cloud, by part, 95 %',
      's',
      q(quantile(0.95, 'kronos_collect_duration_seconds', 'part'), '{{part}}'),
    ),
    lines(
      'Time of a query to Prometheus, 95 %',
      's',
      q(quantile(0.95, 'kronos_prometheus_query_duration_seconds', 'query'), '{{query}}'),
    ),
    lines(
      'Time of a decision, 95 %',
      's',
      q(quantile(0.95, 'kronos_decide_duration_seconds', 'aggregate'), '{{aggregate}}'),
    ),
    lines(
      'Candidates evaluated',
      'cps',
      q('sum by (aggregate) (rate(kronos_candidates_evaluated_total[$__rate_interval]))', '{{aggregate}}'),
    ),
    lines('Size of a snapshot', 'bytes', q('max by (aggregate) (kronos_snapshot_bytes)', '{{aggregate}}')),
    lines(
      'Processor',
      'percentunit',
      q(`rate(process_cpu_seconds_total${JOB}[$__rate_interval])`, '{{job}} {{instance}}'),
    ),
    lines('Resident memory', 'bytes', q(`process_resident_memory_bytes${JOB}`, '{{job}} {{instance}}')),
    lines('Event loop busy', 'percentunit', q(`nodejs_eventloop_utilization_ratio${JOB}`, '{{job}} {{instance}}')),
    lines(
      'Requests to the services',
      'reqps',
      q(
        'sum by (job, route, status) (rate(kronos_http_requests_total[$__rate_interval]))',
        '{{job}} {{route}} {{status}}',
      ),
    ),
  ],
};

const HOSTS = '{aggregate="$aggregate", policy="$policy"}';
const hosts = {
  uid: 'kronos-hosts',
  title: 'Kronos: hosts of an aggregate',
  variables: ['oneAggregate', 'policy'],
  panels: [
    figure('Highest host', 'percentunit', q(`max(kronos_host_value_ratio${HOSTS})`)),
    figure('Lowest host', 'percentunit', q(`min(kronos_host_value_ratio${HOSTS})`)),
    figure('Imbalance', 'percentunit', q(`max(kronos_imbalance_ratio${HOSTS})`)),
    figure('Threshold', 'percentunit', q(`max(kronos_policy_threshold_ratio${HOSTS})`)),
    heatMap('Value of each host', q(`max by (host) (kronos_host_value_ratio${HOSTS})`, '{{host}}')),
    lines(
      'Five highest hosts',
      'percentunit',
      q(`topk(5, max by (host) (kronos_host_value_ratio${HOSTS}))`, '{{host}}'),
    ),
    lines(
      'Five lowest hosts',
      'percentunit',
      q(`bottomk(5, max by (host) (kronos_host_value_ratio${HOSTS}))`, '{{host}}'),
    ),
  ],
};

const source = (name, type, label) => ({ name, label, type: 'datasource', query: type, current: {} });
const aggregates = {
  type: 'query',
  label: 'Aggregate',
  datasource: PROMETHEUS,
  query: 'label_values(kronos_servers, aggregate)',
  refresh: 2,
  current: {},
};
const VARIABLES = {
  aggregate: { ...aggregates, name: 'aggregate', multi: true, includeAll: true, allValue: '.*' },
  oneAggregate: { ...aggregates, name: 'aggregate' },
  policy: {
    ...aggregates,
    name: 'policy',
    label: 'Policy',
    query: 'label_values(kronos_host_value_ratio{aggregate="$aggregate"}, policy)',
  },
  task: { name: 'task', label: 'Task', type: 'textbox', query: '', current: {} },
  trace: { name: 'trace', label: 'Trace', type: 'textbox', query: '', current: {} },
};

/** Panels from left to right and top to bottom. */
function place(panels) {
  let [x, y, row] = [0, 0, 0];
  return panels.map((each, index) => {
    const [w, h] = [WIDTH[each.kind], HEIGHT[each.kind]];
    if (x + w > 24) [x, y, row] = [0, y + row, 0];
    const gridPos = { x, y, w, h };
    x += w;
    row = Math.max(row, h);
    return render(each, index + 1, gridPos);
  });
}

const OPTIONS = {
  timeseries: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
  'status-history': { rowHeight: 0.9, colWidth: 1, showValue: 'never', legend: { showLegend: false } },
};

function render({ kind, title, unit, queries, trace }, id, gridPos) {
  const refIds = 'ABCDEFGH';
  if (trace !== undefined)
    return {
      id,
      type: kind,
      title,
      gridPos,
      datasource: TRACES,
      targets: [{ refId: 'A', datasource: TRACES, ...trace }],
    };
  return {
    id,
    type: kind,
    title,
    gridPos,
    datasource: PROMETHEUS,
    fieldConfig: {
      defaults: {
        unit,
        ...(kind === 'status-history' ? { min: 0, max: 1, color: { mode: 'continuous-GrYlRd' } } : {}),
        ...(kind === 'timeseries' ? { custom: { fillOpacity: 8, showPoints: 'never', axisSoftMin: 0 } } : {}),
      },
      overrides: [],
    },
    // A cell is at least some pixels wide.
    ...(kind === 'status-history' ? { maxDataPoints: 120 } : {}),
    options: OPTIONS[kind] ?? {},
    targets: queries.map((query, index) => ({
      refId: refIds[index],
      ...(query.expr.includes('histogram_quantile') ? { exemplar: true } : {}),
      datasource: PROMETHEUS,
      ...query,
    })),
  };
}

const dashboard = ({ uid, title, variables, panels }) => ({
  uid,
  title,
  tags: ['kronos'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  refresh: '30s',
  time: { from: 'now-6h', to: 'now' },
  links: [
    { type: 'dashboards', tags: ['kronos'], title: 'Kronos', asDropdown: true, keepTime: true, includeVars: true },
  ],
  templating: {
    list: [
      source('prometheus', 'prometheus', 'Metrics'),
      source('traces', 'jaeger', 'Traces'),
      ...variables.map((name) => VARIABLES[name]),
    ],
  },
  panels: place(panels),
});

/** As the formatter of the repository writes it: lists of one word on one line. */
const json = (value) => `${JSON.stringify(value, null, 2).replace(/\[\n\s+("[^"\n]*")\n\s+\]/g, '[$1]')}\n`;

/** File name -> content. @public imported by the address of the file */
export const dashboards = () =>
  new Map([overview, aggregate, hosts, migration, services].map((each) => [`${each.uid}.json`, json(dashboard(each))]));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const directory = new URL('dashboards/', import.meta.url);
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of dashboards()) writeFileSync(new URL(name, directory), text);
}
