/**
 * What must be done, against proven optima: tight evacuations, and repairs of groups on hosts with little room. Prints JSON.
 *
 *   npm run bench:duties -- [--evacuations 150] [--repairs 115] [--from 0]
 */
import { parseArgs } from 'node:util';
import { evacuations, repairs } from './dutyTrials.ts';

const { values } = parseArgs({
  options: {
    evacuations: { type: 'string', default: '150' },
    repairs: { type: 'string', default: '115' },
    from: { type: 'string', default: '0' },
  },
});
const from = Number(values.from);
console.log(
  JSON.stringify(
    {
      evacuations: await evacuations(from, Number(values.evacuations)),
      repairs: await repairs(from, Number(values.repairs)),
    },
    null,
    2,
  ),
);
