/**
 * Mandatory moves against proven optima: tight evacuations, repairs of groups on hosts with little room; and hosts that pack empties. Prints JSON.
 *
 *   npm run bench:duties -- [--evacuations 150] [--repairs 115] [--packings 200] [--from 0]
 */
import { parseArgs } from 'node:util';
import { evacuations, packings, repairs } from './dutyTrials.ts';

const { values } = parseArgs({
  options: {
    evacuations: { type: 'string', default: '150' },
    repairs: { type: 'string', default: '115' },
    packings: { type: 'string', default: '200' },
    from: { type: 'string', default: '0' },
  },
});
const from = Number(values.from);
console.log(
  JSON.stringify(
    {
      evacuations: await evacuations(from, Number(values.evacuations)),
      repairs: await repairs(from, Number(values.repairs)),
      packings: await packings(from, Number(values.packings)),
    },
    null,
    2,
  ),
);
