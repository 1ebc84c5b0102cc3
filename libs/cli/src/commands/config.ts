import { configSample, policiesSample } from '@kronos/config';
import type { Command } from 'commander';
import { check } from '../check/check.ts';
import type { Finding } from '../check/finding.ts';
import { configFile, withConfig } from '../open.ts';
import type { Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';

export function configCommands(program: Command, shell: Shell): void {
  const { terminal } = shell;
  const config = program.command('config').description('Check the configuration, or print a sample of it');

  withConfig(config.command('check'))
    .description(
      'Validate both files, connect to everything, and judge every query as the scorer does (also kronos-test-config)',
    )
    .option('--json', 'Print the findings as JSON')
    .addHelpText('after', '\nExit status: 0 when nothing failed, 1 otherwise.')
    .action(async (options: { config?: string; json?: boolean }) => {
      const findings: Finding[] = [];
      const report = (finding: Finding) => {
        findings.push(finding);
        if (options.json !== true) terminal.out(`${renderFinding(terminal, finding)}\n`);
      };
      await check(configFile(shell, options), shell.env, report);
      const failed = findings.filter((f) => f.state === 'failed').length;
      if (options.json === true) terminal.out(`${JSON.stringify({ ok: failed === 0, findings }, null, 2)}\n`);
      else terminal.out(`\n${verdict(findings)}\n`);
      process.exitCode = failed === 0 ? 0 : 1;
    });

  config
    .command('sample')
    .description('Print kronos.conf with every option, its meaning and its default')
    .option('--policies', 'Print a sample policies.yaml instead')
    .action((options: { policies?: boolean }) => {
      terminal.out(options.policies === true ? policiesSample() : configSample());
    });
}

/** One line about all findings. */
export function verdict(findings: readonly Finding[]): string {
  const count = (state: Finding['state']): number => findings.filter((one) => one.state === state).length;
  const failed = count('failed');
  if (failed > 0) return `${failed} of ${findings.length} checks failed.`;
  const warnings = count('warning');
  if (warnings > 0) return `No check failed, with ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}.`;
  return 'All checks passed.';
}

/** A finding as a person reads it. */
export function renderFinding(terminal: Terminal, { what, state, text, remedy }: Finding): string {
  const style = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'dim' } as const;
  const [first = '', ...more] = text.split('\n');
  return [
    `${paint(terminal, style[state], state.padEnd(8))} ${what}: ${first}`,
    ...[...more, ...(remedy === null ? [] : [`-> ${remedy}`])].map((line) => `         ${line}`),
  ].join('\n');
}
