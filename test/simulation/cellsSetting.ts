/** The two cells of a run with moves between them, and what its seed draws of the services' options. */
import { type Config, defaultConfig } from '@kronos/config';
import { parseScenario, type Scenario } from '@kronos/simcloud';
import type { Chance } from './chance.ts';

export const AGGREGATES = ['old', 'new'] as const;
const OLD = ['o1', 'o2'];
const NEW = ['n1', 'n2'];
export const HOSTS: readonly string[] = [...OLD, ...NEW];

export function cellsScenario(): Scenario {
  const host = (name: string, cell: string, trait: string) => ({
    name,
    cell,
    traits: [trait],
    vcpus: 16,
    memoryMb: 65_536,
  });
  const size = { vcpus: 2, memoryMb: 2048, diskGb: 1 };
  return parseScenario({
    crossCellResize: true,
    hosts: [
      ...OLD.map((name) => host(name, 'cell1', 'CUSTOM_OLD')),
      ...NEW.map((name) => host(name, 'cell2', 'CUSTOM_NEW')),
    ],
    aggregates: [
      { name: 'old', hosts: OLD },
      { name: 'new', hosts: NEW },
    ],
    flavors: [
      { name: 'any', ...size },
      { name: 'old.small', ...size, extraSpecs: { 'trait:CUSTOM_OLD': 'required' } },
      { name: 'new.small', ...size, extraSpecs: { 'trait:CUSTOM_NEW': 'required' } },
    ],
    servers: Array.from({ length: 10 }, (_, i) => ({
      name: `vm-${i}`,
      host: ['o1', 'o2', 'n1'][i % 3] ?? 'o1',
      flavor: 'any',
      status: i % 4 === 3 ? ('SHUTOFF' as const) : ('ACTIVE' as const),
    })),
  });
}

/** Nothing is balanced: only what people ask for is moved. */
export function drawCellsConfig(chance: Chance): Config {
  const confirm = chance.pick(['auto', 'manual'] as const);
  return {
    ...defaultConfig,
    engine: {
      ...defaultConfig.engine,
      aggregates: [...AGGREGATES],
      balance: false,
      dryRun: false,
      evaluationInterval: 300,
      instanceCooldown: 60,
      instanceQuarantineSeconds: 60,
    },
    executor: {
      ...defaultConfig.executor,
      pollInterval: chance.pick([2, 5, 10]),
      retryBackoff: 5,
      maxRetries: chance.int(0, 2),
    },
    cells: {
      ...defaultConfig.cells,
      aggregates: [
        { cell: 'cell1', aggregate: 'old' },
        { cell: 'cell2', aggregate: 'new' },
      ],
      networksShared: true,
      volumesShared: true,
      confirm,
      verifySeconds: chance.pick([0, 30]),
      verifyTimeout: 120,
      approvalTtl: 1800,
      planTtl: 3600,
      maxConcurrentResizes: chance.int(1, 4),
      maxOutboundPerHost: 2,
      maxInboundPerHost: 2,
    },
    nats: { ...defaultConfig.nats, ackWait: chance.pick([10, 30]) },
  };
}
