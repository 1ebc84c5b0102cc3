import { runProgram } from './program.ts';
import { processShell } from './shell.ts';

process.exitCode = await runProgram(process.argv.slice(2), processShell());
