import { type Reason, some } from '@kronos/contracts';
import { EPSILON, isAbove } from '@kronos/rules';
import { byte, float, int, item } from '../../base/array.ts';
import type { Cluster } from '../../cluster/cluster.ts';
import { imbalances } from '../../cluster/measure.ts';
import { Draft } from '../../draft/draft.ts';
import { type Bound, bound } from './bound.ts';
import { type Field, fieldOf } from './field.ts';

/** Values this close are the same in words. */
const SAME = 1e-6;

/**
 * The thresholds that no moves of any number reach, each with the imbalance that the bound leaves possible and what limits it.
 *
 * @param ofAll the bound without a limit on moves.
 */
export function unreachableThresholds(field: Field, ofAll: Bound): Reason[] {
  return field.cluster.policies.flatMap(({ name, threshold }, p): Reason[] => {
    const bounded = Math.max(0, float(ofAll.high, p) - float(ofAll.low, p));
    const [vm, byVm] = largestVm(field, p);
    const reachable = Math.max(bounded, byVm);
    if (!isAbove(reachable, threshold) || !isAbove(float(field.imbalance, p), threshold)) return [];
    const large = `one VM, ${field.cluster.vmNames[vm] ?? ''}, has a load of ${figure(loadOf(field, vm, p))} wherever it is`;
    const limit = byVm > bounded + SAME ? { host: '', text: large } : limitOf(field, ofAll, p);
    const text = `no moves bring the imbalance of ${name} below ${figure(reachable)}, and its threshold is ${figure(threshold)}: ${limit.text}. Set a threshold of ${upward(reachable)} or more`;
    return [{ code: 'threshold-unreachable', text, detail: { policy: name, threshold, reachable, host: limit.host } }];
  });
}

/** The same for a cluster as it is. */
export function unreachableIn(cluster: Cluster): Reason[] {
  const draft = new Draft(cluster, cluster.V);
  const field = fieldOf(draft, imbalances(cluster, draft.score), 0);
  const { home: place, score, movable, V } = field;
  return unreachableThresholds(field, bound({ cluster, place, score, movable, budget: V }));
}

const figure = (value: number): string => String(Number(value.toFixed(3)));
const upward = (value: number): string => String(Math.ceil(value * 100 - SAME) / 100);

/** What keeps the highest value from being lower, or the values from being nearer to one another. */
function limitOf({ cluster, score, movable, home }: Field, { high }: Bound, p: number) {
  const { H, V, P, weight, vmNames, hostNames } = cluster;
  const floor = new Float64Array(H);
  const named = new Float64Array(H);
  for (let h = 0; h < H; h++) floor[h] = float(score, h * P + p);
  for (let v = 0; v < V; v++) {
    const h = int(home, v);
    named[h] = float(named, h) + float(weight, v * P + p);
    if (movable[v] === 1) floor[h] = float(floor, h) - float(weight, v * P + p);
  }
  const host = highest(cluster, floor);
  const name = item(hostNames, host);
  if (float(floor, host) < float(high, p) - SAME) return { host: '', text: EVENLY };
  const unexplained = float(score, host * P + p) - float(named, host);
  const fixed = float(floor, host) - unexplained;
  const stays = `${figure(float(floor, host))} stays on ${name}`;
  if (unexplained > fixed + EPSILON) {
    const without = vmNames.filter((_, v) => home[v] === host && float(weight, v * P + p) === 0);
    const text = `${stays}, and ${figure(unexplained)} of it is of no VM with a value`;
    return { host: name, text: without.length === 0 ? text : `${text}; without one: ${some(without)}` };
  }
  let largest = -1;
  for (let v = 0; v < V; v++) {
    if (home[v] !== host || movable[v] === 1) continue;
    if (largest < 0 || float(weight, v * P + p) > float(weight, largest * P + p)) largest = v;
  }
  const load = figure(float(weight, largest * P + p));
  return { host: name, text: `${stays}, because VMs cannot move, such as ${item(vmNames, largest)} with ${load}` };
}

function highest({ H, counted }: Cluster, values: Float64Array): number {
  let best = 0;
  for (let h = 0; h < H; h++)
    if (byte(counted, h) === 1 && (byte(counted, best) !== 1 || float(values, h) > float(values, best))) best = h;
  return best;
}

const EVENLY = 'the loads of the VMs that may move cannot be divided more evenly among the hosts that take them';

const loadOf = ({ cluster: { P, weight } }: Field, vm: number, p: number): number => float(weight, vm * P + p);

/**
 * The largest VM on counted hosts, and how low the imbalance can be with it: its host has at least its load, and some other host at most the
 * mean of the others. 0 where hosts are unlike or VMs cannot go everywhere.
 */
function largestVm(field: Field, p: number): [vm: number, imbalance: number] {
  const { cluster, home, movable, score, partOf, H, V, P } = field;
  let [sum, hosts, largest] = [0, 0, -1];
  for (let h = 0; h < H; h++) {
    if (byte(cluster.counted, h) !== 1) continue;
    hosts++;
    sum += float(score, h * P + p);
  }
  for (let v = 0; v < V; v++) {
    if (byte(cluster.counted, int(home, v)) !== 1) sum += movable[v] === 1 ? loadOf(field, v, p) : 0;
    else if (largest < 0 || loadOf(field, v, p) > loadOf(field, largest, p)) largest = v;
  }
  if (largest < 0 || hosts < 2 || !cluster.alike || partOf.some((part) => part !== partOf[0])) return [largest, 0];
  const load = loadOf(field, largest, p);
  return [largest, load - (sum - load) / (hosts - 1)];
}
