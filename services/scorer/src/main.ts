import { commandLine, runService } from '@kronos/telemetry';
import { scorerService } from './service.ts';

const { file } = commandLine('scorer');

// A handle that a library left open does not keep the process.
process.exit(await runService(scorerService(), { file, env: process.env }));
