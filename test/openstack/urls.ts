import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The folder of the cloud that `test/openstack/bed` starts. */
export const bedRoot = process.env.BED_ROOT ?? '/var/tmp/openstack-bed';

const shiftFile = `${bedRoot}/lab/shift`;
const shift = existsSync(shiftFile) ? Number(readFileSync(shiftFile, 'utf8')) : 0;
const at = (port: number): string => `http://127.0.0.1:${port + shift}`;

/** Addresses of that cloud's APIs. It uses higher ports when the usual ones are taken at its start. */
export const bedUrls = {
  identity: `${at(15000)}/v3`,
  nova: at(18774),
  compute: `${at(18774)}/v2.1`,
  placement: at(18778),
  prometheus: at(19090),
  /** RabbitMQ on 127.0.0.1, guest / guest. */
  rabbitPort: 15673 + shift,
  /** The same with TLS. It asks for a client certificate: `lab/tls` in {@link bedRoot} has one, and the CA of both. */
  rabbitTlsPort: 15671 + shift,
} as const;

/**
 * The sections of a kronos.conf that every test on that cloud needs: the cloud, the NATS server, a free port for each service.
 *
 * @param of `novaUrl`: of a proxy before Nova; `username`: of another user than admin, with the same password
 */
export const bedConfig = (of: {
  readonly natsUrl: string;
  readonly novaUrl?: string;
  readonly ackWaitSeconds?: number;
  readonly username?: string;
}): string => `[nova]
auth_url = ${bedUrls.identity}
username = ${of.username ?? 'admin'}
password = secret
project_name = admin
user_domain_id = default
project_domain_id = default
region_name = RegionOne
${of.novaUrl === undefined ? '' : `endpoint_override = ${of.novaUrl}/v2.1\n`}[nats]
servers = ${of.natsUrl}
${of.ackWaitSeconds === undefined ? '' : `ack_wait = ${of.ackWaitSeconds}\n`}log_max_bytes = 256MiB
snapshot_max_bytes = 256MiB
[http]
scorer_port = 0
planner_port = 0
executor_port = 0
ledger_port = 0
[log]
format = json
`;

/**
 * A policy that spreads by a measure that the bed's exporter gives of its hosts (`host_cpu_utilisation`) and of its servers (`vm_cpu_cores / 64`).
 * @param of `moves`: `max_migrations_per_cycle`
 */
export const bedPolicy = (of: {
  readonly name: string;
  readonly weight: number;
  readonly host: string;
  readonly vm: string;
  readonly threshold: number;
  readonly moves: number;
}): string => `  - name: ${of.name}
    mode: spread
    weight: ${of.weight}
    imbalance_query: ${of.host}
    host_label: host
    vm_profile_query: ${of.vm}
    vm_profile_label: instance_uuid
    vm_profile_label_type: nova_instance_uuid
    threshold: ${of.threshold}
    max_migrations_per_cycle: ${of.moves}
`;

/** The series of the bed's exporter for CPU and memory. */
export const bedCpu = { name: 'cpu', host: 'host_cpu_utilisation', vm: 'vm_cpu_cores / 64' } as const;
export const bedMemory = { name: 'memory', host: 'host_mem_utilisation', vm: 'vm_mem_mb / 262144' } as const;

/** Runs a command of that cloud, such as `bed('fault', id, 'fail')`, and returns its output. */
export async function bed(...args: string[]): Promise<string> {
  const options = { maxBuffer: 64 * 1024 ** 2 };
  const { stdout } = await promisify(execFile)(fileURLToPath(new URL('bed', import.meta.url)), args, options);
  return stdout;
}
