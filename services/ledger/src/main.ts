import { commandLine, runService } from '@kronos/telemetry';
import { ledgerService } from './service.ts';

const { file } = commandLine('ledger');

process.exit(await runService(ledgerService(), { file, env: process.env }));
