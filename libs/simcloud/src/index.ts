export type { Act, ActInput } from './acts.ts';
export { type ManualClock, manualClock, realClock, type SimClock } from './clock.ts';
export { Cloud, type CloudOptions } from './cloud.ts';
export { ActError, NovaRefusal, ScenarioError } from './errors.ts';
export type { ApiFaultSetting, ApiName, HostFaultSetting, SeriesFaultSetting, ServerFaultSetting } from './faults.ts';
export { NOVA_TIMING, type Timing } from './model.ts';
export { parseScenario, type Scenario, type ScenarioInput } from './scenario.ts';
export { demoCloud, demoPolicies } from './scenarios/demo.ts';
export { type GenerateOptions, generate } from './scenarios/generate.ts';
export { METRICS } from './series.ts';
export {
  type ActOutcome,
  type Arrived,
  type CallRecord,
  type InProcessSim,
  type MigrationRecord,
  openSim,
  type Sim,
  type SimOptions,
  type SimUrls,
  startSim,
} from './sim.ts';
