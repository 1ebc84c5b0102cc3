/** The faults of a run with moves between two cells. */
import type { Chance } from './chance.ts';
import type { ServiceName } from './services.ts';
import type { CloudActs } from './stage/cloud.ts';
import type { NetworkActs } from './stage/networks.ts';
import type { ProcessActs } from './stage/processes.ts';
import type { Trouble } from './trouble.ts';

/** The parts that these faults act on. */
export interface CellsStage
  extends Pick<ProcessActs, 'processes' | 'kill' | 'pause'>,
    Pick<NetworkActs, 'cut' | 'stall' | 'refuse'>,
    Pick<CloudActs, 'act' | 'hosts' | 'movingHosts'> {
  /** Every server that was there at first. */
  readonly servers: readonly string[];
  /** The nova-compute of a host dies, and is started again. */
  killHost(host: string, downMs: number): void;
  loseLog(): void;
}

/** The draws for every fault, whether or not it needs them. */
interface Target {
  readonly process: string;
  readonly ms: number;
  readonly server: string;
}

/** Until the first fault; until the next one, on average. */
const FIRST_MS = 400_000;
const MEAN_MS = 40_000;
/** The next request that moves a server. */
const POST = { api: 'compute', method: 'POST', path: '/action$', probability: 1, times: 1 } as const;

const faults: readonly ((stage: CellsStage, target: Target, chance: Chance) => void)[] = [
  (stage, { process, ms }) => stage.kill(process, ms),
  (stage, { process, ms }) => stage.kill(process, ms),
  (stage, { process, ms }) => stage.pause(process, ms),
  (stage, { process, ms }) => stage.cut(process, ms),
  (stage, { process, ms }) => stage.stall(process, ms),
  (stage, { process, ms }) => stage.refuse(process, ms),
  (stage, _, chance) =>
    stage.act({
      act: 'faultApi',
      fault: { ...POST, effect: { kind: 'cut', when: chance.pick(['before', 'after', 'middle']) } },
    }),
  (stage, _, chance) =>
    stage.act({
      act: 'faultApi',
      fault: { ...POST, effect: { kind: 'status', status: 504, processed: chance.flip(0.5) } },
    }),
  (stage, { server }, chance) =>
    stage.act({
      act: 'faultServer',
      server,
      fault: { kind: chance.pick(['snapshot', 'spawn', 'confirm', 'revert']), times: 1 },
    }),
  (stage, { server }) => stage.act({ act: 'faultServer', server, fault: { kind: 'slow', seconds: 300, times: 1 } }),
  // A host that has a part in a move, mostly.
  (stage, _, chance) => {
    const moving = stage.movingHosts();
    const host = chance.pick(moving.length > 0 && chance.flip(0.8) ? moving : stage.hosts());
    stage.killHost(host, chance.exponential(300_000));
  },
  (stage, _, chance) => {
    if (chance.flip(0.1)) stage.loseLog();
  },
];

/** Begins the faults, which act one after the other. */
export function beginFaults(
  trouble: Trouble,
  chance: Chance,
  stage: CellsStage,
  services: readonly ServiceName[],
): void {
  const own = chance.fork('faults');
  const next = (): void => {
    const service = own.flip(0.7) ? 'executor' : own.pick(services);
    const process = own.pick(stage.processes(service));
    const target = { process, ms: own.exponential(20_000), server: own.pick(stage.servers) };
    own.pick(faults)(stage, target, own);
    trouble.after(own.exponential(MEAN_MS), next);
  };
  trouble.after(FIRST_MS, next);
}
