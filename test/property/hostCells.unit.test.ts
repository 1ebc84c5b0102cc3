/** NUMA cells against the simulated cloud, which tries every choice of cells and shares no code with the planner. */
import { defaultEngineOptions, type Snapshot } from '@kronos/contracts';
import { checkMove, type DecideInput, decide, emptyMemory, observe } from '@kronos/placement';
import { Cloud, parseScenario, type ScenarioInput } from '@kronos/simcloud';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { observeCloud } from '../bench/clouds/estate.ts';
import { RUNS } from './runs.ts';

const START = Date.UTC(2026, 0, 5);
const GIB = 1024;
const HUGE = 1024 ** 2;

const cell = fc.record({
  dedicatedCpus: fc.integer({ min: 0, max: 8 }),
  sharedCpus: fc.integer({ min: 1, max: 6 }),
  memoryMb: fc.integer({ min: 4, max: 20 }).map((gib) => gib * GIB),
  huge: fc.integer({ min: 0, max: 4 }),
});
const flavor = fc.record({
  vcpus: fc.integer({ min: 1, max: 3 }).map((half) => 2 * half),
  gib: fc.integer({ min: 1, max: 4 }).map((half) => 2 * half),
  nodes: fc.constantFrom(null, '1', '2'),
  dedicated: fc.boolean(),
  huge: fc.boolean(),
  isolate: fc.boolean(),
});
const estate = fc.record({
  hosts: fc.array(fc.array(cell, { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 4 }),
  flavors: fc.array(flavor, { minLength: 1, maxLength: 4 }),
  /** More of them on the first host. */
  servers: fc.array(fc.record({ host: fc.constantFrom(0, 0, 0, 1, 2, 3), flavor: fc.nat(3) }), {
    minLength: 4,
    maxLength: 14,
  }),
  pack: fc.boolean(),
  cpuRatio: fc.constantFrom(1, 2),
});
type Estate = typeof estate extends fc.Arbitrary<infer T> ? T : never;

/** The cloud with those of the servers that Nova would have placed. */
function cloudOf({ hosts, flavors, servers, pack, cpuRatio }: Estate): Cloud {
  const scenario: ScenarioInput = {
    packNumaCells: pack,
    timing: { jitter: 0 },
    hosts: hosts.map((cells, h) => ({
      name: `h${h}`,
      vcpus: 64,
      memoryMb: 256 * GIB,
      reservedMemoryMb: 0,
      cpuRatio,
      memoryRatio: 1,
      cells: cells.map(({ huge, memoryMb, ...cpus }, id) => ({
        id,
        ...cpus,
        memoryMb: memoryMb + huge * GIB,
        pages: huge > 0 ? { [HUGE]: huge } : {},
      })),
    })),
    flavors: flavors.map(({ vcpus, gib, nodes, dedicated, huge, isolate }, f) => ({
      name: `f${f}`,
      vcpus,
      memoryMb: gib * GIB,
      extraSpecs: {
        ...(nodes === null ? {} : { 'hw:numa_nodes': nodes }),
        ...(dedicated ? { 'hw:cpu_policy': 'dedicated' } : {}),
        ...(dedicated && isolate ? { 'hw:emulator_threads_policy': 'isolate' } : {}),
        ...(huge ? { 'hw:mem_page_size': String(HUGE) } : {}),
      },
    })),
  };
  const cloud = new Cloud(parseScenario(scenario), { startMs: START });
  for (const [v, server] of servers.entries()) {
    const host = `h${server.host % hosts.length}`;
    const name = `f${server.flavor % flavors.length}`;
    const wanted = cloud.flavors.get(name);
    if (wanted === undefined || cloud.cellsFor(host, wanted) === null) continue;
    cloud.createServer(START, { name: `v${v}`, host, flavor: name });
  }
  return cloud;
}

const seen = (cloud: Cloud): Snapshot => observeCloud(cloud, cloud.nowMs, 0, { cells: true, traits: true });

/** Nova's answer to a request for a move: where the server is in the end. */
function move(cloud: Cloud, uuid: string, host: string): string {
  const caller = { userId: cloud.admin.id, projectId: cloud.admin.projectId, requestId: `req-${uuid}` };
  cloud.liveMigrate(cloud.nowMs, caller, uuid, { host, force: false, async: true });
  cloud.advance(cloud.nowMs + 600_000);
  return cloud.server(uuid).host;
}

describe('NUMA cells', () => {
  it('take a VM exactly where Nova finds cells for it', () => {
    let [legal, refused] = [0, 0];
    fc.assert(
      fc.property(estate, (given) => {
        const cloud = cloudOf(given);
        const { cluster } = observe(seen(cloud), emptyMemory, defaultEngineOptions, START);
        for (const { uuid, host: home, flavor: own } of cloud.servers.values())
          for (const host of cloud.hosts.keys()) {
            if (host === home) continue;
            const verdict = checkMove(cluster, uuid, host);
            const fits = cloud.cellsFor(host, own) !== null;
            if ('ok' in verdict) {
              expect(fits).toBe(true);
              legal++;
            } else if (verdict.code === 'numa-fit') {
              expect(fits).toBe(false);
              refused++;
            } else expect(['capacity', 'unit-limit']).toContain(verdict.code);
          }
      }),
      { numRuns: RUNS },
    );
    expect(Math.min(legal, refused)).toBeGreaterThan(RUNS / 10);
  });

  it('take every move of a plan, in whatever order the moves end and whatever cells Nova chooses', () => {
    let moves = 0;
    fc.assert(
      fc.property(estate, fc.nat(), (given, order) => {
        const cloud = cloudOf(given);
        const options: DecideInput['options'] = {
          ...defaultEngineOptions,
          evacuateDisabledHosts: true,
          searchWorkLimit: 2000,
        };
        const snapshot = seen(cloud);
        // The first host gets empty: its VMs look for cells at the same time.
        const hosts = snapshot.hosts.map((host) =>
          host.name === 'h0' ? { ...host, service: { ...host.service, status: 'disabled' as const } } : host,
        );
        const { plan } = decide({ snapshot: { ...snapshot, hosts }, memory: emptyMemory, options });
        const waiting = [...(plan?.steps ?? [])];
        const ended = new Set<string>();
        for (let i = 0; waiting.length > 0; i++) {
          const ready = waiting.filter(({ dependsOn }) => dependsOn.every((id) => ended.has(id)));
          const step = ready[(order + i) % ready.length];
          if (step === undefined) break;
          expect(move(cloud, step.serverId, step.to)).toBe(step.to);
          ended.add(step.taskId);
          waiting.splice(waiting.indexOf(step), 1);
          moves++;
        }
        expect(waiting).toEqual([]);
      }),
      { numRuns: RUNS },
    );
    expect(moves).toBeGreaterThan(RUNS / 10);
  });
});
