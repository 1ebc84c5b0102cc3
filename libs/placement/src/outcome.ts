import { type Cluster, keysAt, shareOn } from './cluster.ts';
import { onGrid } from './grid.ts';
import { valuesAfter } from './measure.ts';

/** The cluster as the next observation would show it once the VMs are at `place`: the start of a second run. */
export function outcomeOf(cluster: Cluster, place: Int32Array): Cluster {
  const { V, P, R, demand, vmKind, hostSource, sources, size } = cluster;
  const weight = Float64Array.from(cluster.weight);
  const load = Float64Array.from(cluster.load);
  const free = Float64Array.from(cluster.free);
  for (let v = 0; v < V; v++) {
    const a = cluster.vmHost[v] as number;
    const b = place[v] as number;
    if (a === b) continue;
    for (let p = 0; p < P; p++) {
      weight[v * P + p] = shareOn(cluster, v, b, p);
      load[v * P + p] = onGrid((weight[v * P + p] as number) * (size[b * P + p] as number));
    }
    for (let r = 0; r < R; r++) {
      free[a * R + r] = (free[a * R + r] as number) + (demand[v * R + r] as number);
      free[b * R + r] = (free[b * R + r] as number) - (demand[v * R + r] as number);
    }
  }
  return {
    ...cluster,
    vmHost: Int32Array.from(place),
    score: valuesAfter(cluster, cluster.score, cluster.vmHost, place),
    fullness: valuesAfter(cluster, cluster.fullness, cluster.vmHost, place),
    weight,
    load,
    free,
    vmKey: keysAt(vmKind, hostSource, sources, place),
  };
}
