/** What `kronos config check` reports for one aggregate with three hosts and two VMs, from given answers of Prometheus. */
import { type CompleteEngineOptions, defaultEngineOptions, type Policy, type Snapshot } from '@kronos/contracts';
import { assemble, hostNamesOf, matchAnswers, type QueryAnswer, vmNamesOf } from '@kronos/observation';
import { answer, cloud, indexOf, options, policy } from '@kronos/observation/testing';
import { server } from '@kronos/openstack/testing';
import { judgeAggregate } from '../src/check/movable.ts';
import { judgeQueries } from '../src/check/queries.ts';

export const HOSTS = ['a', 'b', 'c'];

const engine: CompleteEngineOptions = { ...defaultEngineOptions, balance: true };
const units = { minUnit: 1, maxUnit: 64, stepSize: 1 };

type Given = {
  readonly policies?: readonly Policy[];
  readonly answers?: readonly QueryAnswer[];
  readonly more?: Parameters<typeof cloud>[0];
  /** Lists that Nova answers otherwise. */
  readonly lists?: Partial<ReturnType<typeof cloud>>;
  /** By metric, as Prometheus' metadata has them. */
  readonly types?: Readonly<Record<string, string>>;
};

export const hostAnswer = (label: string, values: readonly number[]): QueryAnswer =>
  answer(
    'host_cpu',
    values.map((value, i) => [{ [label]: HOSTS[i] ?? '', job: 'node' }, value]),
  );
export const healthyHosts = hostAnswer('host', [0.9, 0.2, 0.4]);
export const healthyVms = answer('vm_cpu', [
  [{ uuid: '1', domain: 'instance-1' }, 0.3],
  [{ uuid: '2', domain: 'instance-2' }, 0.1],
]);
const twoServers = [server('1', 'a'), server('2', 'b')];

export function judge(given: Given) {
  const policies = given.policies ?? [policy('cpu')];
  const lists = { ...cloud({ servers: twoServers, ...given.more }), ...given.lists };
  const index = indexOf(lists);
  const answers = matchAnswers({
    policies,
    answers: given.answers ?? [healthyHosts, healthyVms],
    stalenessMs: 300_000,
    hosts: hostNamesOf(lists),
    vms: vmNamesOf(index),
  });
  const snapshot: Snapshot = assemble({
    listings: new Map(),
    identity: {
      id: 'gpu-0',
      purpose: 'record',
      cycle: 0,
      intervalSeconds: 60,
      observedFrom: '2026-01-01T12:00:00.000Z',
      time: '2026-01-01T12:00:00.000Z',
    },
    aggregate: 'gpu',
    scope: ['gpu'],
    options,
    policies,
    balance: true,
    lists,
    index,
    capacity: {
      providers: new Map(
        HOSTS.map((host) => [
          `id-of-${host}`,
          { inventory: { VCPU: { capacity: 256, used: 4, ...units } }, traits: [] },
        ]),
      ),
      failures: new Map(),
      failure: null,
    },
    answers,
    known: [],
    fates: new Map(),
  });
  const queries = judgeQueries({
    policies,
    answers,
    types: new Map(Object.entries(given.types ?? {})),
    snapshots: [snapshot],
    hosts: hostNamesOf(lists),
    vms: vmNamesOf(index),
  });
  const aggregates = judgeAggregate(snapshot, engine, ['gpu', 'general']);
  const find = (what: string) => [...queries, ...aggregates].find((one) => one.what === what);
  return {
    all: [...queries, ...aggregates],
    hosts: find('policy cpu imbalance_query'),
    vms: find('policy cpu vm_profile_query'),
    aggregate: find('aggregate gpu'),
  };
}
