import { commandLine, runService } from '@kronos/telemetry';
import { plannerService } from './service.ts';

const { file } = commandLine('planner');

process.exit(await runService(plannerService(), { file, env: process.env }));
