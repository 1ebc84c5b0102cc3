import { float, int } from '../base/array.ts';
import { type Cluster, keysAt, shareOn } from './cluster.ts';
import { onGrid } from './grid.ts';
import { cellsAt } from './hostCells.ts';
import { valuesAfter } from './measure.ts';

/** The cluster that the next observation would show with the VMs at `place`: the start of a second run. */
export function clusterAfter(cluster: Cluster, place: Int32Array): Cluster {
  const { V, P, R, demand, vmKind, hostSource, sources, size } = cluster;
  const weight = Float64Array.from(cluster.weight);
  const load = Float64Array.from(cluster.load);
  const free = Float64Array.from(cluster.free);
  for (let v = 0; v < V; v++) {
    const a = int(cluster.vmHost, v);
    const b = int(place, v);
    if (a === b) continue;
    for (let p = 0; p < P; p++) {
      weight[v * P + p] = shareOn(cluster, v, b, p);
      load[v * P + p] = onGrid(float(weight, v * P + p) * float(size, b * P + p));
    }
    for (let r = 0; r < R; r++) {
      free[a * R + r] = float(free, a * R + r) + float(demand, v * R + r);
      free[b * R + r] = float(free, b * R + r) - float(demand, v * R + r);
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
    numa: cluster.numa === null ? null : cellsAt(cluster.numa, cluster.vmHost, place),
    vmKey: keysAt(vmKind, hostSource, sources, place),
  };
}
