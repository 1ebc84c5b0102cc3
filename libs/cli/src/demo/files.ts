/** The demo's own configuration: short times, so that a person sees in a minute what takes hours in a real cloud. */
export type DemoPlaces = {
  readonly natsUrl: string;
  readonly keystoneUrl: string;
  readonly prometheusUrl: string;
  readonly policiesFile: string;
};

export const DEMO_AGGREGATE = 'demo';

export const demoConfig = (places: DemoPlaces): string => `# Written by kronos demo.
[engine]
aggregates = ${DEMO_AGGREGATE}
policies_file = ${places.policiesFile}
dry_run = false
evaluation_interval = 2
cooldown = 4
instance_cooldown = 10
settle_seconds = 2.5

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
log_max_bytes = 64MiB
snapshot_max_bytes = 256MiB

[http]
scorer_port = 0
planner_port = 0
executor_port = 0
ledger_port = 0

[log]
format = json
`;

export const demoThresholds: ReadonlyMap<string, number> = new Map([
  ['cpu', 0.15],
  ['memory', 0.15],
]);

export const demoPolicies = `# Written by kronos demo.
policies:
  - name: cpu
    mode: spread
    weight: 0.5
    imbalance_query: host_cpu_utilisation
    host_label: host
    vm_profile_query: vm_cpu_cores / 64
    vm_profile_label: instance_uuid
    vm_profile_label_type: nova_instance_uuid
    threshold: ${demoThresholds.get('cpu')}
    max_migrations_per_cycle: 16
  - name: memory
    mode: spread
    weight: 0.5
    imbalance_query: host_mem_utilisation
    host_label: host
    vm_profile_query: vm_mem_mb / 262144
    vm_profile_label: instance_uuid
    vm_profile_label_type: nova_instance_uuid
    threshold: ${demoThresholds.get('memory')}
    max_migrations_per_cycle: 16
`;
