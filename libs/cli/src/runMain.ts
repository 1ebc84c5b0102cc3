import { scrub } from '@kronos/telemetry/scrub';
import { runProgram } from './program.ts';
import { processShell } from './shell.ts';
import { harmless } from './terminal.ts';

/** Runs a command line as this process. Returns the exit status. */
export function runMain(args: readonly string[]): Promise<number> {
  // An error that no command waits for. A service has a handler of its own, which logs it.
  process.on('uncaughtException', (error) => {
    if (process.listenerCount('uncaughtException') > 1) return;
    process.stderr.write(harmless(scrub(`kronos: unexpected error: ${error.stack ?? error.message}\n`)));
    process.exit(1);
  });
  return runProgram(args, processShell());
}
