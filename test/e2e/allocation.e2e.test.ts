import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openWorld, released, settled, type World } from './world.ts';

/** With five moves a cycle, the default, a path of plans can end in a state that no five moves improve. */
const MOVES = 'max_migrations_per_cycle: 10';
const POLICIES = `policies:
  - { name: vcpu, mode: spread, weight: 0.4, source: allocation, resource_class: VCPU, threshold: 0.1, ${MOVES} }
  - { name: ram, mode: spread, weight: 0.4, source: allocation, resource_class: MEMORY_MB, threshold: 0.1, ${MOVES} }
  - { name: count, mode: spread, weight: 0.2, source: allocation, instances: true, threshold: 0.35, ${MOVES} }
`;

describe('an installation that balances by what is allocated', () => {
  let world: World | null = null;
  let directory = '';
  afterEach(async () => {
    await world?.close();
    world = null;
    await rm(directory, { recursive: true, force: true });
  });

  it('is balanced without an answer from Prometheus', async () => {
    directory = await mkdtemp(join(tmpdir(), 'kronos-allocation-'));
    const file = join(directory, 'policies.yaml');
    await writeFile(file, POLICIES);
    const env = {
      OS_ENGINE__POLICIES_FILE: file,
      // The default. Allocations change only by moves, so a search that finds no plan finds none in the next cycles either.
      OS_ENGINE__SEARCH_WORK_LIMIT: '20000000',
      // Such a search takes ten times its CPU time on a busy machine, and a decision is withdrawn after two intervals.
      OS_ENGINE__EVALUATION_INTERVAL: '15',
      // Nothing listens on port 1.
      OS_PROMETHEUS__URL: 'http://127.0.0.1:1',
    };
    world = await openWorld({ env });
    await world.until('a balanced cloud', settled);
    const decisions = world.events.filter((e) => e.type === 'cycle.decided');
    expect(released(world.events).length).toBeGreaterThan(0);
    const [first] = decisions;
    const last = decisions.at(-1);
    expect(first?.data.before.combined).toBeGreaterThan(last?.data.before.combined ?? 1);
    for (const policy of last?.data.before.policies ?? [])
      expect(policy.imbalance).toBeLessThanOrEqual(policy.threshold);
    expect((await world.migrations()).length).toBeGreaterThan(0);
  });
});
