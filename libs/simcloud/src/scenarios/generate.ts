import { random, type SeededRandom } from '../random.ts';
import { parseScenario, type Scenario, type ScenarioInput, type ServerInput } from '../scenario.ts';

export interface GenerateOptions {
  readonly hosts: number;
  readonly vms: number;
  readonly seed?: number;
  /** Host aggregates, the hosts spread evenly over them: `aggregate-1` ... Default 1. */
  readonly aggregates?: number;
  /** Availability zones, likewise: `zone-1` ... Default 0: only Nova's `nova`. */
  readonly zones?: number;
  /** Share of the VMs that are in a server group of 2 to 4 members. Default 0.1. */
  readonly grouped?: number;
  /** 0: every host gets the same number of VMs; 1: the busiest host gets several times as many as the idlest. Default 0.8. */
  readonly skew?: number;
  /** Share of the VMs whose CPU demand varies over the day. Default 0. */
  readonly varying?: number;
  /** Memory and cores of a host, relative to what its share of the VMs has on average. Default 2; at 0.9 most hosts are full. */
  readonly room?: number;
  /** Placement's allocation ratio of memory. Default 1.5. */
  readonly memoryRatio?: number;
}

const FLAVORS = [
  { name: 'g.small', vcpus: 2, memoryMb: 4096, diskGb: 20 },
  { name: 'g.medium', vcpus: 4, memoryMb: 8192, diskGb: 40 },
  { name: 'g.large', vcpus: 8, memoryMb: 16_384, diskGb: 80 },
  { name: 'm.large', vcpus: 4, memoryMb: 32_768, diskGb: 80 },
] as const;

/** The hosts of a generated cloud are alike. */
type Hosts = { readonly names: readonly string[]; readonly vcpus: number; readonly memoryMb: number };

/**
 * A cloud of any size, the same for the same seed. Every host is as large as its share of the VMs needs and three
 * times more, so that there is room to move; what a host is liked by decides how many VMs it gets.
 */
export function generate(options: GenerateOptions): Scenario {
  const { hosts: count, vms, seed = 1, memoryRatio = 1.5, aggregates = 1, zones = 0 } = options;
  const chance = random(seed);
  const hosts = hostsOf(options);
  const { names, vcpus, memoryMb } = hosts;
  const servers = serversOn(hosts, options, chance);
  const groups = group(servers, Math.floor(vms * (options.grouped ?? 0.1)), chance);
  const spread = (parts: number, prefix: string): NonNullable<ScenarioInput['aggregates']> =>
    Array.from({ length: parts }, (_, index) => ({
      name: `${prefix}-${index + 1}`,
      hosts: names.filter((__, at) => at % parts === index),
    }));
  return parseScenario({
    name: `generated-${count}x${vms}`,
    seed,
    hosts: names.map((name) => ({ name, vcpus, memoryMb, memoryRatio, diskGb: 100_000 })),
    flavors: [...FLAVORS],
    aggregates: [
      ...spread(aggregates, 'aggregate'),
      ...spread(zones, 'zone').map((zone) => ({ ...zone, availabilityZone: zone.name })),
    ],
    groups,
    servers,
  });
}

function hostsOf({ hosts, vms, room = 2 }: GenerateOptions): Hosts {
  const digits = String(hosts).length;
  const share = vms / hosts;
  return {
    names: Array.from({ length: hosts }, (_, index) => `host-${String(index + 1).padStart(digits, '0')}`),
    vcpus: Math.max(16, Math.ceil((share * 4 * room) / 16) * 16),
    memoryMb: Math.max(65_536, Math.ceil((share * 16_384 * room) / 16_384) * 16_384),
  };
}

/** Each host gets its share of the VMs by how much it is liked; a VM that finds it full goes to the next with room. */
function serversOn({ names, vcpus, memoryMb }: Hosts, options: GenerateOptions, chance: SeededRandom): ServerInput[] {
  const { vms, skew = 0.8, varying = 0, memoryRatio = 1.5 } = options;
  const liking = names.map(() => 1 - skew + 2 * skew * chance.next() ** 2);
  const total = liking.reduce((sum, each) => sum + each, 0);
  const shareOf = (host: number): number => ((liking[host] ?? 0) / total) * vms;
  const room = names.map(() => ({ memoryMb: memoryMb * Math.min(1.2, memoryRatio), cores: vcpus * 0.95 }));
  const servers: ServerInput[] = [];
  let carried = 0;
  let next = 0;
  for (let index = 0; index < vms; index++) {
    // Walks along the likings, so that each host gets its share to within one VM.
    while (next < names.length - 1 && index >= carried + shareOf(next)) {
      carried += shareOf(next);
      next++;
    }
    const flavor = chance.pick(FLAVORS);
    const at = withRoom(room, next, flavor);
    const left = room[at];
    if (left === undefined) continue;
    const cpuCores = Math.min(left.cores, round(flavor.vcpus * (0.1 + 0.8 * chance.next() ** 2)));
    const usedMb = Math.round(flavor.memoryMb * (0.3 + 0.6 * chance.next()));
    left.memoryMb -= flavor.memoryMb;
    left.cores -= cpuCores;
    const curve =
      chance.next() < varying
        ? { amplitude: round(0.1 + 0.4 * chance.next()), periodSeconds: 86_400, phase: round(chance.next()) }
        : undefined;
    servers.push({
      id: chance.uuid(),
      name: `vm-${index + 1}`,
      host: names[at] ?? '',
      flavor: flavor.name,
      demand: { cpuCores, memoryMb: usedMb, ...(curve === undefined ? {} : { curve }) },
    });
  }
  return servers;
}

/** The first host from `from` on that has room for the flavor; `from` itself when none has. */
function withRoom(
  room: readonly { readonly memoryMb: number; readonly cores: number }[],
  from: number,
  { memoryMb, vcpus }: (typeof FLAVORS)[number],
): number {
  for (let tries = 0; tries < room.length; tries++) {
    const at = (from + tries) % room.length;
    const left = room[at];
    if (left !== undefined && left.memoryMb >= memoryMb && left.cores >= vcpus * 0.2) return at;
  }
  return from;
}

/** Puts this many of the servers into groups of 2 to 4 that keep their rules where the servers are. */
function group(servers: ServerInput[], wanted: number, chance: SeededRandom): NonNullable<ScenarioInput['groups']> {
  const groups: NonNullable<ScenarioInput['groups']> = [];
  const policies = ['anti-affinity', 'soft-anti-affinity', 'affinity', 'soft-affinity'] as const;
  const free = servers.map((_, index) => index);
  for (let left = wanted; left > 1 && free.length > 3; ) {
    const size = Math.min(left, chance.int(2, 4));
    const policy = chance.pick(policies);
    const name = `group-${groups.length + 1}`;
    groups.push({ name, policy });
    const members = takeMembers(servers, free, { size, together: !policy.includes('anti') }, chance);
    for (const member of members) {
      const server = servers[member];
      if (server !== undefined) servers[member] = { ...server, group: name };
    }
    left -= members.length;
  }
  return groups;
}

/** Takes the members of a group out of the free servers: all on one host, or each on another. */
function takeMembers(
  servers: readonly ServerInput[],
  free: number[],
  { size, together }: { readonly size: number; readonly together: boolean },
  chance: SeededRandom,
): number[] {
  const first = free.splice(chance.int(0, free.length - 1), 1)[0] ?? 0;
  const members = [first];
  const start = chance.int(0, free.length - 1);
  for (let step = 0; step < free.length && members.length < size; step++) {
    const place = (start + step) % free.length;
    const candidate = free[place] ?? 0;
    const host = servers[candidate]?.host;
    const hosts = members.map((member) => servers[member]?.host);
    if (together ? host !== hosts[0] : hosts.includes(host)) continue;
    members.push(candidate);
    free.splice(place, 1);
  }
  return members;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
