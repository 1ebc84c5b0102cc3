import { random } from '../random.ts';
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

/**
 * A cloud of any size, the same for the same seed. Every host is as large as its share of the VMs needs and three
 * times more, so that there is room to move; what a host is liked by decides how many VMs it gets.
 */
export function generate(options: GenerateOptions): Scenario {
  const { hosts, vms } = options;
  const seed = options.seed ?? 1;
  const chance = random(seed);
  const skew = options.skew ?? 0.8;
  const names = Array.from(
    { length: hosts },
    (_, index) => `host-${String(index + 1).padStart(String(hosts).length, '0')}`,
  );
  const share = vms / hosts;
  const { room: factor = 2, memoryRatio = 1.5 } = options;
  const vcpus = Math.max(16, Math.ceil((share * 4 * factor) / 16) * 16);
  const memoryMb = Math.max(65_536, Math.ceil((share * 16_384 * factor) / 16_384) * 16_384);
  const liking = names.map(() => 1 - skew + 2 * skew * chance.next() ** 2);
  const total = liking.reduce((sum, each) => sum + each, 0);
  const servers: ServerInput[] = [];
  const room = names.map(() => ({ memoryMb: memoryMb * Math.min(1.2, memoryRatio), cores: vcpus * 0.95 }));
  let carried = 0;
  let next = 0;
  for (let index = 0; index < vms; index++) {
    // Walks along the likings, so that each host gets its share to within one VM.
    while (next < hosts - 1 && index >= carried + ((liking[next] ?? 0) / total) * vms) {
      carried += ((liking[next] ?? 0) / total) * vms;
      next++;
    }
    const flavor = chance.pick(FLAVORS);
    let at = next;
    for (
      let tries = 0;
      tries < hosts && ((room[at]?.memoryMb ?? 0) < flavor.memoryMb || (room[at]?.cores ?? 0) < flavor.vcpus * 0.2);
      tries++
    )
      at = (at + 1) % hosts;
    const left = room[at];
    if (left === undefined) continue;
    const cpuCores = Math.min(left.cores, round(flavor.vcpus * (0.1 + 0.8 * chance.next() ** 2)));
    const usedMb = Math.round(flavor.memoryMb * (0.3 + 0.6 * chance.next()));
    left.memoryMb -= flavor.memoryMb;
    left.cores -= cpuCores;
    const curve =
      chance.next() < (options.varying ?? 0)
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
  const groups: NonNullable<ScenarioInput['groups']> = [];
  const policies = ['anti-affinity', 'soft-anti-affinity', 'affinity', 'soft-affinity'] as const;
  let wanted = Math.floor(vms * (options.grouped ?? 0.1));
  const free = servers.map((_, index) => index);
  while (wanted > 1 && free.length > 3) {
    const size = Math.min(wanted, chance.int(2, 4));
    const policy = chance.pick(policies);
    const name = `group-${groups.length + 1}`;
    groups.push({ name, policy });
    const first = free.splice(chance.int(0, free.length - 1), 1)[0] ?? 0;
    const members = [first];
    const together = policy.endsWith('affinity') && !policy.includes('anti');
    const start = chance.int(0, free.length - 1);
    for (let step = 0; step < free.length && members.length < size; step++) {
      const place = (start + step) % free.length;
      const candidate = free[place] ?? 0;
      const host = servers[candidate]?.host;
      const hostsSoFar = members.map((member) => servers[member]?.host);
      if (together ? host !== hostsSoFar[0] : hostsSoFar.includes(host)) continue;
      members.push(candidate);
      free.splice(place, 1);
    }
    for (const member of members) {
      const server = servers[member];
      if (server !== undefined) servers[member] = { ...server, group: name };
    }
    wanted -= members.length;
  }
  const spread = (count: number, prefix: string, zoned: boolean): NonNullable<ScenarioInput['aggregates']> =>
    Array.from({ length: count }, (_, index) => ({
      name: `${prefix}-${index + 1}`,
      hosts: names.filter((__, at) => at % count === index),
      ...(zoned ? { availabilityZone: `${prefix}-${index + 1}` } : {}),
    }));
  return parseScenario({
    name: `generated-${hosts}x${vms}`,
    seed,
    hosts: names.map((name) => ({ name, vcpus, memoryMb, memoryRatio, diskGb: 100_000 })),
    flavors: [...FLAVORS],
    aggregates: [...spread(options.aggregates ?? 1, 'aggregate', false), ...spread(options.zones ?? 0, 'zone', true)],
    groups,
    servers,
  });
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
