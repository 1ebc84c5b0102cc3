import { UNASSIGNED } from '@kronos/contracts/names';
import type { Config } from './options.ts';

/** The configuration as it applies to one aggregate: its section `[aggregate:NAME]` wins over `[engine]`. */
export function aggregateConfig(config: Config, aggregate: string): Config {
  const own = config.overrides.get(aggregate);
  return own === undefined ? config : { ...config, engine: { ...config.engine, ...own } };
}

/** The scope of this installation: the configured aggregates, and the unassigned pool where it is included. */
export const scopeOf = ({ engine }: Pick<Config, 'engine'>): string[] => [
  ...engine.aggregates,
  ...(engine.includeUnassignedHosts ? [UNASSIGNED] : []),
];
