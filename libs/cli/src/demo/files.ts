/** The demo's own configuration: short times, so that a person sees in a minute what takes hours in a real cloud. */
export type DemoPlaces = {
  readonly natsUrl: string;
  readonly keystoneUrl: string;
  readonly prometheusUrl: string;
  readonly policiesFile: string;
  /** Ports of the services' HTTP servers; absent: any free ones, which then nobody knows beforehand. */
  readonly ports?: {
    readonly scorer: number;
    readonly planner: number;
    readonly executor: number;
    readonly ledger: number;
  };
};

/** The host aggregate of the simulated cloud. */
export const DEMO_AGGREGATE = 'general';

export const demoConfig = (places: DemoPlaces): string => `# Written by kronos demo.
[engine]
aggregates = ${DEMO_AGGREGATE}
policies_file = ${places.policiesFile}
dry_run = false
evaluation_interval = 3
cooldown = 4
instance_cooldown = 10
settle_seconds = 2.5
# A plan must be ready within two intervals, also on a machine that is busy.
search_work_limit = 5000000

[executor]
max_concurrent_migrations = 8
max_inbound_per_host = 2
poll_interval = 0.25
retry_backoff = 1

[nova]
auth_url = ${places.keystoneUrl}
username = admin
password = secret
project_name = admin
user_domain_id = default
project_domain_id = default
region_name = RegionOne

[prometheus]
url = ${places.prometheusUrl}
staleness_threshold = 10

[nats]
servers = ${places.natsUrl}
ack_wait = 4
log_max_bytes = 64MiB
snapshot_max_age = 21600
snapshot_max_bytes = 256MiB

[http]
scorer_port = ${places.ports?.scorer ?? 0}
planner_port = ${places.ports?.planner ?? 0}
executor_port = ${places.ports?.executor ?? 0}
ledger_port = ${places.ports?.ledger ?? 0}

[log]
format = json
`;
