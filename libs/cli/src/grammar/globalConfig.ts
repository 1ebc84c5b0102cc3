import type { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { isService } from './services.ts';
import { type ConfigOption, withConfig } from './shared.ts';

/** `kronos -c FILE COMMAND` is `kronos COMMAND -c FILE`. */
export function globalConfig(program: Command): void {
  withConfig(program).hook('preAction', (_, action) => {
    const { config } = program.opts<ConfigOption>();
    if (config === undefined || isService(action.name())) return;
    if (!action.options.some(({ long }) => long === '--config'))
      throw new UsageError(`kronos ${action.name()} does not read kronos.conf`, 'Leave --config out.');
    if (action.opts<ConfigOption>().config !== undefined)
      throw new UsageError('--config is given twice', 'Give it before or after the command.');
    action.setOptionValue('config', config);
  });
}
