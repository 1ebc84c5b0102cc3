/**
 * Moves that make room for new VMs, against the proven fewest. Random clusters of hosts and flavors as clouds have them. Prints JSON, and the
 * figures so far to stderr, a line for every ten clusters.
 *
 *   npm run bench:fit -- [--clusters 60] [--from 0] [--hosts 8,64] [--wanted 6] [--seconds 20]
 */
import { parseArgs } from 'node:util';
import { fitTrials } from './fitTrials.ts';

const { values } = parseArgs({
  options: {
    clusters: { type: 'string', default: '60' },
    from: { type: 'string', default: '0' },
    hosts: { type: 'string', default: '8,64' },
    wanted: { type: 'string', default: '6' },
    seconds: { type: 'string', default: '20' },
  },
});
const [least = 8, most = 64] = values.hosts.split(',').map(Number);
const asked = {
  from: Number(values.from),
  clusters: Number(values.clusters),
  hosts: [least, most],
  wanted: Number(values.wanted),
  seconds: Number(values.seconds),
} as const;
console.log(JSON.stringify(await fitTrials(asked, (figures) => console.error(JSON.stringify(figures))), null, 2));
