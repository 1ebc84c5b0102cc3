import { UNASSIGNED } from '@kronos/contracts';
import { commandLine, runService } from '@kronos/telemetry';
import { executorService } from './service.ts';

const { file, values } = commandLine(
  'executor',
  { aggregate: { type: 'string', multiple: true }, unassigned: { type: 'boolean' } },
  [
    '--aggregate NAME   serve this aggregate; repeatable (default: all in scope)',
    '--unassigned       serve the pool of hypervisors that belong to no aggregate',
  ],
);
const named = [values.aggregate ?? []].flat().filter((name) => typeof name === 'string');
if (values.unassigned === true) named.push(UNASSIGNED);

process.exit(await runService(executorService(named), { file, env: process.env }));
