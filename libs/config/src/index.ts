export { engineFields, engineOptions, type Override, overrideEngineOption, storageLimits } from './engine.ts';
export { ConfigError, type Problem, renderProblem } from './errors.ts';
export type { CellPattern } from './kinds.ts';
export { DEFAULT_CONFIG_FILE, type Loaded, type LoadInput, loadConfig } from './load.ts';
export {
  type Config,
  type Option,
  type OptionPath,
  options,
  type Reader,
  readers,
  sectionHelp,
  sections,
} from './options.ts';
export { type ParsedPolicies, type PoliciesInput, parsePolicies, policyFileSchema } from './policies.ts';
export { defaultConfig, environmentName } from './resolve.ts';
export { configSample, configurationDoc, generatedFiles, policiesSample } from './sample.ts';
export { aggregateConfig, scopeOf } from './scope.ts';
export { knownSecrets, learnSecret, Secret } from './secret.ts';
export { shownOptions, shownOverrides } from './shown.ts';
export type { Role, Source } from './source.ts';
