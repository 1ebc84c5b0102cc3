/** For tests of the executor: a simulated cloud and a log that is set up for it. */
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { type ScenarioInput, type Sim, startSim } from '@kronos/simcloud';
import { openPlans, type Plans } from './plans.ts';

export const AGGREGATE = 'gpu';

/** Nova's pace in tests: the factor by which its steps and their waits are faster. */
const SPEED = 60;

/** A cloud of a few hosts in one aggregate, `vms` servers on each, named h1-1, h1-2, h2-1 and so on. */
export function smallCloud(
  hosts = 4,
  vms = 3,
  more: Partial<ScenarioInput> = {},
  aggregate: string = AGGREGATE,
): ScenarioInput {
  const names = Array.from({ length: hosts }, (_, i) => `h${i + 1}`);
  return {
    name: 'small',
    hosts: names.map((name) => ({ name, vcpus: 32, memoryMb: 65_536, diskGb: 1000 })),
    aggregates: [{ name: aggregate, hosts: names }],
    flavors: [{ name: 'm1', vcpus: 2, memoryMb: 2048, diskGb: 10 }],
    servers: names.flatMap((host) =>
      Array.from({ length: vms }, (_, i) => ({ name: `${host}-${i + 1}`, host, flavor: 'm1' })),
    ),
    ...more,
  };
}

export interface Bed extends Plans {
  readonly sim: Sim;
  readonly nats: NatsServer;
  /** Uuid of a server by name. */
  uuid(server: string): string;
  close(): Promise<void>;
}

/** A bed on servers of its own; `nats` takes a server that runs already, which then needs an aggregate of its own. */
export async function startBed(
  scenario: ScenarioInput,
  reuse: {
    readonly nats?: NatsServer;
    readonly ackWaitSeconds?: number;
    readonly aggregate?: string;
    readonly speed?: number;
  } = {},
): Promise<Bed> {
  const sim = await startSim({ scenario, speed: reuse.speed ?? SPEED });
  const nats = reuse.nats ?? (await startNatsServer());
  const uuid = (server: string): string => sim.cloud.server(server).uuid;
  const aggregate = reuse.aggregate ?? AGGREGATE;
  const plans = await openPlans({ natsUrl: nats.url, aggregate, ackWaitSeconds: reuse.ackWaitSeconds ?? 1, uuid });
  return {
    ...plans,
    sim,
    nats,
    uuid,
    async close() {
      await plans.log.close();
      await sim.close();
      if (reuse.nats === undefined) await nats.stop();
    },
  };
}
