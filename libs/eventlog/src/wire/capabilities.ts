/**
 * The capabilities of a server, by its version. Older servers silently drop most options that they do not know, and the client
 * does not always complain: code that uses one of these checks here first.
 */

const capabilityTable = {
  /** Durable names in the create subject, `allow_direct`, `discard_new_per_subject`: the oldest server that Kronos works with. */
  namedConsumers: '2.9.0',
  /** Server option `sync_interval`; older ones refuse to start with it. */
  syncInterval: '2.10.0',
  /** Older ones compare the body of an ack as a whole: `+TERM why` is ignored there. */
  termReason: '2.10.4',
  /** Checks per subject that hold on three replicas while appends are in flight and over changes of the leader. */
  replicas: '2.11.0',
  messageTtl: '2.11.0',
  /** `Nats-Expected-Last-Subject-Sequence-Subject`; older ones check the exact subject instead, silently. */
  expectedSubjectFilter: '2.11.0',
  /** The first version with the repairs after the Jepsen report on 2.12.1. */
  replicasAdvised: '2.12.3',
} as const;

type Capability = keyof typeof capabilityTable;
export type Capabilities = { readonly [C in Capability]: boolean };

/** Major, minor, patch; what follows (`-RC.1`, `-beta`) is ignored. Null for text that is no version. */
export function parseVersion(text: string): readonly [number, number, number] | null {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text);
  if (match === null) return null;
  return [Number(match[1]), Number(match[2]), Number(match[3])];
}

/** True when `version` is `minimum` or newer; false for text that is no version. */
export function atLeast(version: string, minimum: string): boolean {
  const have = parseVersion(version);
  const want = parseVersion(minimum);
  if (have === null || want === null) return false;
  for (const i of [0, 1, 2] as const) if (have[i] !== want[i]) return have[i] > want[i];
  return true;
}

/** The capabilities of a server of this version; none where the version cannot be read. */
export const capabilitiesOf = (version: string): Capabilities =>
  Object.fromEntries(
    Object.entries(capabilityTable).map(([name, minimum]) => [name, atLeast(version, minimum)]),
  ) as Capabilities;

/** Whether an installation with this number of replicas may use this server. */
export function judgeNatsServer(
  version: string,
  replicas: number,
): { verdict: 'fine' | 'warn' | 'refuse'; text: string } {
  const { namedConsumers, replicas: minimum, replicasAdvised } = capabilityTable;
  if (!atLeast(version, namedConsumers))
    return { verdict: 'refuse', text: `nats-server ${version} is too old: Kronos needs ${namedConsumers} or newer` };
  if (replicas > 1 && !atLeast(version, minimum))
    return {
      verdict: 'refuse',
      text: `nats-server ${version} does not keep checked appends exact over ${replicas} replicas: use ${minimum} or newer (advised: ${replicasAdvised}), or [nats] replicas = 1`,
    };
  if (replicas > 1 && !atLeast(version, replicasAdvised))
    return {
      verdict: 'warn',
      text: `nats-server ${version} can lose acknowledged messages after a crash in a cluster: ${replicasAdvised} or newer is advised`,
    };
  return { verdict: 'fine', text: `nats-server ${version}` };
}
