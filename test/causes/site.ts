/** One of each service, by its real composition, on the virtual clock of the simulation: what a person sees while a fault lasts. */
import { foldLog } from '@kronos/checkpoints';
import { type Config, defaultConfig, parsePolicies } from '@kronos/config';
import { SimulatedServer } from '@kronos/eventlog/simulated';
import { type ActInput, type InProcessSim, parseScenario, type ScenarioInput } from '@kronos/simcloud';
import { type Alarm, collectFacts, statusOf, unreadableFacts } from '@kronos/status';
import { Chance } from '../simulation/chance.ts';
import { CloudNetwork, NatsNetwork } from '../simulation/network.ts';
import { Provisioner } from '../simulation/people/provisioner.ts';
import { thisRelease } from '../simulation/releases.ts';
import { serviceNames } from '../simulation/services.ts';
import { openCloud } from '../simulation/simulatedCloud.ts';
import { Supervisor } from '../simulation/supervisor.ts';
import { Process, trueClock, World } from '../simulation/world.ts';

const AGGREGATE = 'compute';
export const HOSTS = ['cmp1', 'cmp2', 'cmp3'];
const INTERVAL_SECONDS = 60;
/** By then all services have started and decided. */
const START_MS = 240_000;

/** Three hosts, each with two VMs of equal load: there is nothing to do. */
const scenario: ScenarioInput = {
  name: 'causes',
  scrapeSeconds: 15,
  flavors: [{ name: 'm1', vcpus: 2, memoryMb: 4096, diskGb: 10 }],
  aggregates: [{ name: AGGREGATE, hosts: HOSTS }],
  hosts: HOSTS.map((name) => ({ name, vcpus: 16, memoryMb: 65_536, diskGb: 500 })),
  servers: HOSTS.flatMap((host) =>
    ['a', 'b'].map((letter) => ({
      name: `${host}-${letter}`,
      flavor: 'm1',
      host,
      demand: { cpuCores: 1, memoryMb: 2048 },
    })),
  ),
};

export const POLICIES = `policies:
  - name: cpu
    mode: spread
    weight: 0.6
    imbalance_query: host_cpu_utilisation
    host_label: host
    vm_profile_query: vm_cpu_cores / 16
    vm_profile_label: instance_uuid
    threshold: 0.3
  - name: memory
    mode: spread
    weight: 0.4
    imbalance_query: host_mem_utilisation
    host_label: host
    vm_profile_query: vm_mem_mb / 65536
    vm_profile_label: instance_uuid
    threshold: 0.3
`;

const configOf = (more: (config: Config) => Config): Config =>
  more({
    ...defaultConfig,
    engine: {
      ...defaultConfig.engine,
      aggregates: [AGGREGATE],
      dryRun: true,
      evaluationInterval: INTERVAL_SECONDS,
      searchWorkLimit: 100_000,
    },
    ledger: { ...defaultConfig.ledger, console: false, archiveDir: null },
  });

export interface SiteOptions {
  /** Text of policies.yaml. */
  readonly policies?: string;
  readonly config?: (config: Config) => Config;
  readonly scenario?: (input: ScenarioInput) => ScenarioInput;
}

/** The installation that a case breaks, with the acts that break it. */
export interface Site {
  readonly sim: InProcessSim;
  readonly nats: NatsNetwork;
  /** The server's answers to publishes that are not stored. */
  refuse: (subject: string) => object | null;
  /** How far the clock of the person who looks is behind. */
  behindMs: number;
  readonly supervisor: Supervisor;
  readonly lines: { readonly process: string; readonly line: string }[];
  act(...acts: readonly ActInput[]): void;
  run(ms: number): Promise<void>;
  /** The alarms of `kronos status` now, without what is only worth knowing. */
  alarms(): Promise<readonly Alarm[]>;
  notes(): Promise<readonly Alarm[]>;
  end(): void;
}

/** An installation that is well. */
export async function openSite(options: SiteOptions = {}): Promise<Site> {
  const chance = new Chance('causes');
  const world = new World(chance);
  const sim = openCloud(parseScenario((options.scenario ?? ((input) => input))(scenario)), 1, world);
  const site = { refuse: (_: string): object | null => null, behindMs: 0 };
  const server = new SimulatedServer({ clock: trueClock(world), refuse: (subject) => site.refuse(subject) });
  const nats = new NatsNetwork(world, server, chance, 10_000);
  const cloud = new CloudNetwork(world, sim, chance);
  const config = configOf(options.config ?? ((given) => given));
  const { policies, problems } = parsePolicies({ file: 'policies.yaml', text: options.policies ?? POLICIES });
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  const lines: { process: string; line: string }[] = [];
  const onLine = (process: string, line: string): void => void lines.push({ process, line });
  const aggregates = [AGGREGATE];
  const provisioner = new Provisioner({ world, chance, nats, config, aggregates, ackWaitSeconds: 30, onLine });
  await world.runThrough('provisioning', provisioner.begin(), 60_000);
  const supervisor = new Supervisor({
    world,
    chance,
    releases: {
      this: thisRelease({ config, policies, nats, cloud, rabbit: null, onLine, logLevel: 'info' }, sim),
      other: null,
    },
    services: serviceNames,
    replicas: 1,
  });
  for (const name of supervisor.names()) supervisor.start(name);

  let looks = 0;
  async function look(): Promise<readonly Alarm[]> {
    const person = new Process(world, `person-${++looks}`, chance);
    const read = async (): Promise<readonly Alarm[]> => {
      const clock = () => world.wall - site.behindMs;
      try {
        const log = await nats.connect(person);
        const view = await foldLog(log, {});
        const { state } = view.at();
        const facts = await collectFacts({ log, state, scope: aggregates, maxClockSkewMs: 5000, clock });
        await view.close();
        await log.close();
        return statusOf(facts).alarms;
      } catch (error) {
        const facts = unreadableFacts(error, clock());
        if (facts === null) throw error;
        return statusOf(facts).alarms;
      }
    };
    let found: readonly Alarm[] = [];
    const reading = read().then((alarms) => {
      found = alarms;
    });
    await world.runThrough('kronos status', reading, 120_000);
    person.kill();
    return found;
  }

  await world.run(world.now + START_MS);
  return Object.assign(site, {
    sim,
    nats,
    supervisor,
    lines,
    act: (...acts: readonly ActInput[]) => {
      for (const one of acts) sim.act(one);
    },
    run: (ms: number) => world.run(world.now + ms),
    alarms: async () => (await look()).filter(({ severity }) => severity === 'alarm'),
    notes: async () => (await look()).filter(({ severity }) => severity === 'info'),
    end: () => supervisor.end(),
  });
}
