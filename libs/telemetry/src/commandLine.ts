import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { errorText } from '@kronos/contracts/words';
import { kronosVersion } from './version.ts';

export interface CommandLine {
  /** Path of kronos.conf. Default: the default path. */
  readonly file: string | undefined;
  /** Values of the service's own options. */
  readonly values: Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;
}

/**
 * Reads a service's command line: `--config FILE`, `--version`, `--help` and the options given here. Prints and exits for
 * the last two, and with status 2 for unknown arguments.
 *
 * @param help one line per option given here
 */
export function commandLine(
  service: string,
  own: ParseArgsOptionsConfig = {},
  help: readonly string[] = [],
): CommandLine {
  const usage = [
    `usage: kronos ${service} [options]`,
    '  --config FILE    kronos.conf (default /etc/kronos/kronos.conf)',
    ...help.map((line) => `  ${line}`),
    '  --version, --help',
    '',
  ].join('\n');
  try {
    const { values } = parseArgs({
      options: {
        config: { type: 'string', short: 'c' },
        version: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        ...own,
      },
    });
    if (values.help === true) {
      process.stdout.write(usage);
      process.exit(0);
    }
    if (values.version === true) {
      process.stdout.write(`kronos ${kronosVersion}\n`);
      process.exit(0);
    }
    return { file: typeof values.config === 'string' ? values.config : undefined, values };
  } catch (error) {
    process.stderr.write(`kronos ${service}: ${errorText(error)}\n${usage}`);
    process.exit(2);
  }
}
