/**
 * NUMA cells of a run: the hosts get cells, and some flavors need them. Two flavors change and no draw of another part does, so that the VMs, and
 * those that users create, are the ones that they are without cells.
 */
import type { HostCell } from '@kronos/contracts';
import { Cloud, parseScenario, type Scenario, type ScenarioInput } from '@kronos/simcloud';
import type { NumaMode } from './asked.ts';
import { Chance } from './chance.ts';

/** As the file of `[nova] host_topology` has them. */
export type KnownCells = readonly { readonly hosts: string; readonly cells: readonly HostCell[] }[];

export interface NumaSetting {
  readonly scenario: Scenario;
  /** Null: from the exporter. */
  readonly hostCells: KnownCells | null;
}

const CELLS: readonly number[] = [0, 1];
const DEDICATED = { 'hw:cpu_policy': 'dedicated' };
const ISOLATED = { ...DEDICATED, 'hw:emulator_threads_policy': 'isolate' };
const WIDE = { 'hw:numa_nodes': '2' };
/** Dedicated CPUs of the fullest host beside those in use. */
const SPARE_CPUS = [0, 4, 8, 12] as const;
/** Memory of a cell beside what is in use. Most cells take few VMs: what Placement takes for room is none then. */
const SPARE_MB = [4096, 8192, 8192, 16_384, 32_768] as const;
/** More than all VMs need. */
const ROOMY = { dedicatedCpus: 1_000_000, memoryMb: 1_000_000_000 };

/** The scenario with cells, and the cells that Kronos knows. Host names are alike in both. */
export function withNuma(scenario: Scenario, mode: Exclude<NumaMode, 'none'>, seed: number): NumaSetting {
  const chance = new Chance(`numa/${seed}`);
  const specs = new Map<string, Readonly<Record<string, string>>>([
    ['g.medium', chance.pick([DEDICATED, ISOLATED])],
    ...(chance.flip(0.5) ? [['g.large', chance.pick([DEDICATED, WIDE, { ...DEDICATED, ...WIDE }])] as const] : []),
  ]);
  const numaFilter = chance.flip(0.5);
  const packNumaCells = chance.flip(0.3);
  const withCells = (cellOf: (host: Scenario['hosts'][number], cell: number) => typeof ROOMY): Scenario =>
    parseScenario({
      ...scenario,
      numaFilter,
      packNumaCells,
      flavors: scenario.flavors.map((flavor) => ({ ...flavor, extraSpecs: { ...specs.get(flavor.name) } })),
      hosts: scenario.hosts.map((host) => ({
        ...host,
        cells: CELLS.map((id) => ({ id, sharedCpus: host.vcpus / CELLS.length, ...cellOf(host, id) })),
      })),
    } satisfies ScenarioInput);
  // Cells are at least as large as their use: so the same VMs go to the same cells.
  const used = usedBy(
    new Cloud(
      withCells(() => ROOMY),
      { startMs: 0 },
    ),
  );
  const pinnedOn = (host: string): number => CELLS.reduce((sum, cell) => sum + used(host, cell).pinned, 0);
  const exported = mode === 'known' && chance.flip(0.5);
  // In Placement all hosts are alike: the second opinion of the audit scales no VM by the size of its host. What fits the sum of two cells may fit
  // neither. The exporter does not show how CPUs are spread over cells: then they are spread evenly.
  const fullest = Math.max(
    ...scenario.hosts.map(({ name }) =>
      exported ? CELLS.length * Math.max(...CELLS.map((cell) => used(name, cell).pinned)) : pinnedOn(name),
    ),
  );
  const dedicated = CELLS.length * Math.ceil((fullest + chance.pick(SPARE_CPUS)) / CELLS.length);
  const first = new Map(
    scenario.hosts.map(({ name }) => [
      name,
      exported ? dedicated / CELLS.length : used(name, 0).pinned + chance.int(0, dedicated - pinnedOn(name)),
    ]),
  );
  const whole = withCells(({ name }, cell) => ({
    dedicatedCpus: cell === 0 ? (first.get(name) ?? 0) : dedicated - (first.get(name) ?? 0),
    memoryMb: used(name, cell).memoryMb + chance.pick(SPARE_MB),
  }));
  const file = whole.hosts.map(({ name, cells }) => ({ hosts: name, cells: cells.map(withoutPages) }));
  // A file that names no host: the exporter is not asked.
  return { scenario: whole, hostCells: mode === 'unknown' ? [] : exported ? null : file };
}

const withoutPages = ({ pages: _, ...cell }: Scenario['hosts'][number]['cells'][number]): HostCell => ({
  ...cell,
  pages: [],
});

/** The use of a host's cell. */
function usedBy(cloud: Cloud): (host: string, cell: number) => { readonly pinned: number; readonly memoryMb: number } {
  return (host, cell) => {
    const consumers = [...(cloud.hosts.get(host)?.consumers.values() ?? [])];
    const held = consumers.flatMap(({ cells = [] }) => cells.filter(({ id }) => id === cell));
    return {
      pinned: held.reduce((sum, { pinned }) => sum + pinned, 0),
      memoryMb: held.reduce((sum, { memoryMb }) => sum + memoryMb, 0),
    };
  };
}
