import { defaultEngineOptions } from '@kronos/contracts';
import { SKETCH_TIME, snapshotOf } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { decideCycle } from './cycle.ts';

const snapshot = snapshotOf({
  policies: { cpu: { threshold: 0.1 } },
  hosts: { a: {}, b: {} },
  vms: { v1: { host: 'a', w: { cpu: 0.3 } }, v2: { host: 'b', w: { cpu: 0.3 } } },
});

describe('a destination that Nova refused', () => {
  it.each(['running', 'paused'])('is noted by the next decision of an aggregate that is %s', (how) => {
    const log = testLog(snapshot.aggregate, Date.parse(SKETCH_TIME) - 3_600_000);
    log.configured();
    const task = `${log.released([{ serverId: 'v1', from: 'a', to: 'b' }])}-s1`;
    log.started({ task });
    log.at(10).failed({ task, cause: 'scheduler', reason: { code: 'no-valid-host', text: 'No valid host.' } });
    if (how === 'paused') log.at(20).paused();
    const { decision, novaRefusals } = decideCycle({ snapshot, state: log.state(), options: defaultEngineOptions });
    expect(decision.outcome === 'gated').toBe(how === 'paused');
    expect(novaRefusals).toMatchObject([{ serverId: 'v1', host: 'b' }]);
  });
});
