import { configSample, policiesSample } from '@kronos/config';
import { count } from '@kronos/contracts/words';
import { check } from '../check/check.ts';
import type { CheckFinding } from '../check/finding.ts';
import type { ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configFile } from '../open.ts';
import { answer, isStructured } from '../output.ts';
import type { Shell } from '../shell.ts';
import { paint, type Terminal } from '../terminal.ts';

export type ConfigCheckOptions = ConfigOption & OutputOption;

/** kronos config check: findings are shown as they come. */
export async function configCheck(shell: Shell, options: ConfigCheckOptions): Promise<void> {
  const { terminal } = shell;
  const findings: CheckFinding[] = [];
  const report = (finding: CheckFinding) => {
    findings.push(finding);
    if (!isStructured(options)) terminal.out(`${renderFinding(terminal, finding)}\n`);
  };
  await check(configFile(shell, options), shell.env, report);
  const ok = findings.every(({ state }) => state !== 'failed');
  await answer(shell, options, { ok, findings }, () => `\n${verdict(findings)}\n`);
  process.exitCode = ok ? 0 : 1;
}

/** kronos config sample. */
export function configSampleCommand({ terminal }: Shell, options: { readonly policies?: boolean }): void {
  terminal.out(options.policies === true ? policiesSample() : configSample());
}

/** One line about all findings. */
export function verdict(findings: readonly CheckFinding[]): string {
  const inState = (state: CheckFinding['state']): number => findings.filter((one) => one.state === state).length;
  const failed = inState('failed');
  if (failed > 0) return `${failed} of ${findings.length} checks failed.`;
  const warnings = inState('warning');
  if (warnings > 0) return `No check failed, with ${count(warnings, 'warning')}.`;
  return 'All checks passed.';
}

/** A finding as a person reads it. */
export function renderFinding(terminal: Terminal, { what, state, text, remedy }: CheckFinding): string {
  const style = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'dim' } as const;
  const [first = '', ...more] = text.split('\n');
  return [
    `${paint(terminal, style[state], state.padEnd(8))} ${what}: ${first}`,
    ...[...more, ...(remedy === null ? [] : [`-> ${remedy}`])].map((line) => `         ${line}`),
  ].join('\n');
}
