import { commandLine, runService } from '@kronos/telemetry';
import { scorerService } from './service.ts';

const { file } = commandLine('scorer');

// What was left open by a library does not keep the process.
process.exit(await runService(scorerService(), { file, env: process.env }));
