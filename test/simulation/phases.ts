/** The phases after the faults: everything that must finish finishes, and the audit. */
import type { SimulatedServer } from '@kronos/eventlog/simulated';
import type { InProcessSim, Scenario } from '@kronos/simcloud';
import { audit } from './audit.ts';
import type { Checker } from './checker/checker.ts';
import { ROLES } from './faults.ts';
import type { InventoryWitness } from './inventoryWitness.ts';
import type { LogLoss } from './logLoss.ts';
import type { Commands } from './people/commands.ts';
import type { Custodian } from './people/custodian.ts';
import { actIfPossible, asPerson } from './simulatedCloud.ts';
import { allowWrites } from './stage/streams.ts';
import type { Supervisor } from './supervisor.ts';
import type { Run, Surroundings } from './surroundings.ts';
import type { Moments } from './watch/moments.ts';
import { Process, type World } from './world.ts';

/** Everything must run for so long after the faults, even when nothing is left to do. */
const QUIET_MS = 1_800_000;
/** The audit takes no time of the simulation but that of its requests. */
const AUDIT_MS = 3_600_000;

/** Where faults leave something behind. */
export interface Troubled {
  readonly world: World;
  readonly sim: InProcessSim;
  readonly scenario: Scenario;
  readonly server: SimulatedServer;
  readonly networks: readonly { calm(): void }[];
  readonly supervisor: Supervisor;
  readonly moments: Moments;
  readonly custodian: Custodian;
  readonly logLoss: LogLoss;
  readonly witness: InventoryWitness | null;
}

/** Users take back what they did to servers. */
function wake(sim: InProcessSim): void {
  for (const { uuid: server, vmState, powerState } of sim.cloud.servers.values())
    if (vmState === 'stopped' || vmState === 'paused' || (vmState === 'active' && powerState !== 1))
      actIfPossible(sim, { act: 'setServer', server, vmState: 'active', powerState: 1 });
    else if (vmState === 'rescued' || vmState === 'shelved_offloaded')
      asPerson(sim, (nowMs, caller) =>
        sim.cloud.beginStateAction(nowMs, caller, server, vmState === 'rescued' ? 'unrescue' : 'unshelve'),
      );
}

/** Nothing is wrong any more. Processes that are down start again by themselves. */
export function calm(troubled: Troubled): void {
  const { world, sim, scenario, server, networks, supervisor, moments, custodian, logLoss, witness } = troubled;
  moments.clear();
  for (const network of networks) network.calm();
  sim.act({ act: 'mendAll' });
  allowWrites(server);
  custodian.skipAllNow();
  logLoss.stateNow();
  for (const process of supervisor.processes()) {
    witness?.skewed(process.name, 0, world.wall);
    process.skewMs = 0;
    if (process.paused) process.resume();
  }
  sim.act({ act: 'setRoles', user: 'admin', roles: ROLES });
  for (const { name, hosts } of scenario.aggregates)
    actIfPossible(sim, { act: 'setAggregate', aggregate: name, hosts: [...hosts] });
  wake(sim);
  for (const [host, { disabledReason }] of sim.cloud.hosts) {
    actIfPossible(sim, { act: 'startHost', host });
    // Kronos itself enables a host that it disabled.
    const disabled = disabledReason?.startsWith('Kronos drain') === true;
    actIfPossible(sim, {
      act: 'setHost',
      host,
      ...(disabled ? {} : { disabled }),
      up: true,
      forcedDown: false,
      full: false,
    });
  }
}

/** People end their pauses and drains. */
export function endActs(commands: Commands, { aggregates }: Pick<Scenario, 'aggregates'>): void {
  commands.append('aggregate.resumed', '_all_', {});
  for (const { name, hosts } of aggregates) {
    commands.append('aggregate.resumed', name, {});
    for (const host of hosts) commands.append('host.undrainAsked', name, { host });
  }
}

/** Runs without faults until every task has ended, and has the checker look whether everything has. */
export async function finish(
  { world, drawn: { planTtlSeconds } }: Run,
  checker: Checker,
  aggregates: readonly string[],
  over: () => boolean,
): Promise<void> {
  const calmMs = world.wall;
  // The longest wait: a task that no executor started ends one plan_ttl after its last start time.
  const longestMs = 2 * planTtlSeconds * 1000 + 3_600_000;
  await world.run(
    world.now + longestMs,
    () => over() || (world.wall - calmMs > QUIET_MS && checker.unfinished(calmMs).length === 0),
  );
  checker.settled(calmMs, aggregates);
}

export async function auditRun(
  { world, chance }: Run,
  { nats, checker }: Pick<Surroundings, 'nats' | 'checker'>,
  witness: InventoryWitness | null,
): Promise<void> {
  const log = nats.connect(new Process(world, 'auditor', chance));
  const audited = log.then((its) =>
    audit(
      its,
      chance.fork('audit'),
      (rule, text) => checker.breach(rule, text),
      witness === null ? null : (snapshot, process, storedMs) => witness.judge(snapshot, process, storedMs),
    ),
  );
  await world.runThrough('the audit', audited, AUDIT_MS);
}
