import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import type { ConfigOption } from './shared.ts';

const services = {
  scorer: 'Run the scorer: observe and score the cloud',
  planner: 'Run the planner: decide on each snapshot',
  executor: 'Run the executor: execute released moves (--aggregate NAME, repeatable, --unassigned: serve only these)',
  ledger: 'Run the ledger: checkpoints, archive, HTTP API, console',
} as const;

/** A service reads its own command line. */
export const isService = (name: string): boolean => Object.hasOwn(services, name);

/** The program of a service. It is run as its own main module, never imported. */
export const serviceMain = (service: keyof typeof services): string =>
  fileURLToPath(new URL(`../../../../services/${service}/src/main.ts`, import.meta.url));

/** Each service as a subcommand: this process becomes the service. */
export function serviceCommands(program: Command): void {
  for (const [name, description] of Object.entries(services)) {
    program
      .command(name)
      .description(description)
      .helpOption(false)
      .allowUnknownOption()
      .argument('[options...]')
      .action(async (options: string[]) => {
        const main = serviceMain(name as keyof typeof services);
        const { config } = program.opts<ConfigOption>();
        const before = config === undefined ? [] : ['--config', config];
        process.argv = [process.argv[0] ?? 'node', main, ...before, ...options];
        await import(main);
      });
  }
}
