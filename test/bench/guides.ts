import { parseArgs } from 'node:util';
import { clusterOf } from '@kronos/placement';
import { searchPhase } from '@kronos/placement/testing';
import { largeCluster } from './clusters.ts';

/**
 * From which number of hosts guides pay: the default search with them and without, at the same work, with as many moves as hosts. Prints
 * JSON. `excess` is the combined imbalance without guides over that with them, less 1: above 0, guides are better.
 *
 *   node test/bench/guides.ts [--sizes 50x1000,100x2000] [--seeds 1,2,3,4,5]
 */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '25x500,50x1000,75x1500,100x2000,150x3000,200x4000,400x8000' },
    seeds: { type: 'string', default: '1,2,3,4,5' },
  },
});
const seeds = values.seeds.split(',').map(Number);

function measure(size: string) {
  const [hosts = 0, vms = 0] = size.split('x').map(Number);
  const excess = seeds
    .map((seed) => {
      const cluster = clusterOf(largeCluster(hosts, vms, seed), { maxMigrations: hosts });
      const guided = searchPhase(cluster, hosts, 0).combined;
      return searchPhase(cluster, hosts, Number.POSITIVE_INFINITY).combined / guided - 1;
    })
    .sort((a, b) => a - b);
  const better = excess.filter((each) => each > 0).length;
  return { size, lowest: excess[0], median: excess[excess.length >> 1], highest: excess.at(-1), guidesBetter: better };
}

console.log(JSON.stringify({ seeds: seeds.length, sizes: values.sizes.split(',').map(measure) }, null, 2));
