import { parseArgs } from 'node:util';
import { type Checked, checkBound, isFalse, isTight } from './bound.ts';

/**
 * The lower bound beside optima that HiGHS proves, on drawn clusters. Prints JSON; exits 1 where a bound is false.
 *
 *   npm run fuzz:bound -- [--clusters 5000] [--seed 1]
 */
const { values } = parseArgs({
  options: { clusters: { type: 'string', default: '5000' }, seed: { type: 'string', default: '1' } },
});
const first = Number(values.seed);
const count = Number(values.clusters);
const wrong: Checked[] = [];
let checked = 0;
let tight = 0;
for (let seed = first; seed < first + count; seed++) {
  const one = await checkBound(seed);
  if (one === null) continue;
  checked++;
  if (isFalse(one)) wrong.push(one);
  if (isTight(one)) tight++;
  if (checked % 500 === 0) console.error(`${checked} of ${count} clusters checked, ${wrong.length} bounds false`);
}
console.log(JSON.stringify({ clusters: count, checked, tight, false: wrong }, null, 2));
if (wrong.length > 0 || checked === 0) process.exitCode = 1;
