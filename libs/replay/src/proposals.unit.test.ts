import {
  type CapacityReading,
  type CellsReading,
  capacityPlanId,
  cellsPlanId,
  commandSnapshotId,
  type PlanProposed,
  type Reason,
  type Snapshot,
} from '@kronos/contracts';
import { planRequest, proposedEvent, runProposal, withoutRefused } from '@kronos/cycle';
import { digestOf } from '@kronos/eventlog';
import { plannerVersion } from '@kronos/placement';
import { cellsSettings } from '@kronos/placement/testing';
import { aggregateState, createFolder } from '@kronos/projections';
import { describe, expect, it } from 'vitest';
import { memoryHistory, operate, storedDigest } from '../testing/index.ts';
import { verify } from './verify.ts';

const op = operate({ seed: 5, cycles: 20, aggregates: ['gpu', 'general'] });
const newest = (name: string): Snapshot =>
  op.snapshots.findLast(({ aggregate }) => aggregate === name) ?? expect.fail(`no snapshot of ${name}`);
const folder = createFolder();
for (const stored of op.events) folder.apply(stored);
const log = folder.snapshot();
const last = op.events.at(-1) ?? expect.fail('no event');

/** A request to move all servers of gpu to the hosts of general. */
function asked(servers: readonly string[] | null): Snapshot {
  const home = newest('gpu');
  const cells: CellsReading = {
    commandId: 'c1',
    asked: {
      from: ['gpu'],
      to: 'general',
      flavorMap: {},
      servers: servers === null ? null : [...servers],
      project: null,
      limit: null,
    },
    map: { gpu: 'cell1', general: 'cell2' },
    settings: { ...cellsSettings, volumesShared: true, networksShared: true, confirm: 'manual' },
    others: [newest('general')],
    metadata: {},
    flavors: {},
    facts: Object.fromEntries(home.servers.map(({ id }) => [id, { volumes: 0, ports: [] }])),
    unread: [],
  };
  return { ...home, id: commandSnapshotId('gpu', 'c1'), purpose: 'cells', cells };
}

/** The answer of a planner, with its details in the bucket when `short`. */
function answered(
  snapshot: Snapshot,
  { short = false, refusal = null }: { readonly short?: boolean; readonly refusal?: Reason | null } = {},
) {
  const request = planRequest(snapshot) ?? expect.fail('no request');
  const options = aggregateState(log, 'gpu').configured?.options ?? expect.fail('no options');
  const { decision, digests } = runProposal({
    request,
    stateOf: (name) => aggregateState(log, name),
    options,
    refusal,
  });
  const bytes = new TextEncoder().encode(JSON.stringify(decision));
  const size = { bytes: bytes.length, storedBytes: bytes.length };
  const details = { bucket: 'DETAILS', object: snapshot.id, digest: digestOf(bytes), ...size };
  const event = proposedEvent(short ? withoutRefused(decision) : decision, {
    request,
    basis: log.sequence,
    plannerVersion,
    options,
    digests: { snapshot: storedDigest(snapshot), ...digests },
    details: short ? details : null,
    by: { service: 'planner', instance: 'one', version: '0' },
    nowMs: last.storedAt,
  });
  return { event, bytes };
}

/** The verdict about an answer, at the end of an operation. */
async function verdictOf(event: PlanProposed, kept: readonly Snapshot[], details = new Uint8Array()) {
  const history = memoryHistory(
    [...op.events, { sequence: last.sequence + 1, storedAt: last.storedAt, event }],
    [...op.snapshots, ...kept],
  );
  const cycles = await Array.fromAsync(verify({ ...history, details: async () => details }, {}, { threads: 1 }));
  expect(cycles.slice(0, -1).filter(({ verdict }) => verdict !== 'identical')).toEqual([]);
  expect((await Array.fromAsync(history.proposals({}))).map(({ event }) => event.id)).toEqual([event.id]);
  return cycles.at(-1) ?? expect.fail('no verdict');
}

describe('a recorded plan that makes room', () => {
  /** A request for one more VM than fit, of a size that moves make room for. */
  function room() {
    const seen = newest('gpu');
    // Long after the last move.
    const time = new Date(Date.parse(seen.time) + 3_600_000).toISOString();
    // Every host has 10 GiB left.
    const hosts = seen.hosts.map((host) => {
      const { MEMORY_MB: ram, ...others } = host.inventory ?? {};
      if (ram === undefined) throw new Error(`${host.name} has no RAM`);
      return { ...host, inventory: { ...others, MEMORY_MB: { ...ram, capacity: ram.used + 10 * 1024 } } };
    });
    const home = { ...seen, hosts, time, observedFrom: time };
    const said: string[] = [];
    for (let gib = 11; gib < 40; gib++) {
      const resources = { MEMORY_MB: gib * 1024 };
      const shape = { name: `${gib} GiB`, resources, requiredTraits: [], forbiddenTraits: [] };
      const capacity: CapacityReading = { commandId: 'r1', asked: { shape, count: 1 } };
      const snapshot: Snapshot = { ...home, id: commandSnapshotId('gpu', 'r1'), purpose: 'capacity', capacity };
      const { event } = answered(snapshot);
      said.push(event.data.reason.code);
      if (event.data.outcome === 'planned') return { snapshot, event, shape };
    }
    return expect.fail(`no size needs moves: ${said.join()}`);
  }
  const { snapshot, event, shape } = room();

  it('is identical when it is run again, to the byte', async () => {
    expect(event.data).toMatchObject({ planId: capacityPlanId('gpu', 'r1'), to: 'gpu' });
    expect(event.data.steps.length).toBeGreaterThan(0);
    expect(await verdictOf(event, [snapshot])).toMatchObject({
      verdict: 'identical',
      snapshotId: snapshot.id,
      steps: event.data.steps.length,
    });
  });

  it('was not made, because the snapshot was too old: the answer is identical, and cannot pass for another decision', async () => {
    const refusal = { code: 'too-old', text: 'gpu-r1 is 301 s old, more than two intervals: run the command again' };
    const late = answered(snapshot, { refusal }).event;
    expect(late.data).toMatchObject({ outcome: 'gated', reason: refusal, release: 'none', steps: [] });
    expect(await verdictOf(late, [snapshot])).toMatchObject({ verdict: 'identical', outcome: 'gated' });
    const reason = { code: 'paused', text: 'ada paused it' };
    const other = { ...late, data: { ...late.data, reason } };
    expect(await verdictOf(other, [snapshot])).toMatchObject({ verdict: 'different' });
  });

  it('differs when more was asked for, and cannot be run when its snapshot does not say what for', async () => {
    const { capacity: _, ...rest } = snapshot;
    const more = { ...snapshot, capacity: { commandId: 'r1', asked: { shape, count: 500 } } };
    expect(await verdictOf(event, [more])).toMatchObject({ verdict: 'different' });
    expect(await verdictOf(event, [rest])).toMatchObject({
      verdict: 'notReplayed',
      reason: 'its snapshot does not say what was asked for',
    });
  });
});

describe('a recorded plan between cells', () => {
  const snapshot = asked(null);
  const { event } = answered(snapshot);
  const edited = (data: Partial<PlanProposed['data']>): PlanProposed => ({
    ...event,
    data: { ...event.data, ...data },
  });

  it('is identical when it is run again, to the byte', async () => {
    expect(event.data.steps.length).toBeGreaterThan(0);
    expect(await verdictOf(event, [snapshot])).toMatchObject({
      verdict: 'identical',
      aggregate: 'gpu',
      snapshotId: snapshot.id,
      sequence: last.sequence + 1,
      outcome: 'planned',
      steps: event.data.steps.length,
    });
  });

  it('is identical where the event holds a part of it and the bucket the rest', async () => {
    const { event, bytes } = answered(snapshot, { short: true });
    expect(event.data.steps.every(({ why }) => why === undefined)).toBe(true);
    expect(await verdictOf(event, [snapshot], bytes)).toMatchObject({ verdict: 'identical' });
  });

  it('differs when a step was changed', async () => {
    const [first, ...others] = event.data.steps;
    if (first === undefined) throw new Error('there is no step');
    expect(await verdictOf(edited({ steps: [{ ...first, to: 'elsewhere' }, ...others] }), [snapshot])).toMatchObject({
      verdict: 'different',
      causes: ['the recorded decision is not the one it has the digest of'],
      differences: [{ path: expect.stringContaining('steps[0].to'), recorded: 'elsewhere', replayed: first.to }],
    });
  });

  it('differs when it was made of something else, or released otherwise', async () => {
    const digests = { ...event.data.digests, state: 'sha256:0' };
    const differs = (cause: unknown) => ({ verdict: 'different', causes: [cause] });
    const state = differs('its state is not the one that it was made of');
    expect(await verdictOf(edited({ digests }), [snapshot])).toMatchObject(state);
    expect(event.data.release).not.toBe('none');
    const release = differs(expect.stringContaining('its plan is none, and by the options on the log it would be '));
    expect(await verdictOf(edited({ release: 'none' }), [snapshot])).toMatchObject(release);
    const fewer = asked([event.data.steps[0]?.serverId ?? '']);
    const other = differs('its snapshot is not the one that it was made of');
    expect(await verdictOf(event, [fewer])).toMatchObject(other);
  });

  it('of another planner version may differ', async () => {
    expect(await verdictOf(edited({ plannerVersion: 'other', left: 7 }), [snapshot])).toMatchObject({
      verdict: 'otherVersion',
    });
  });

  it('is not run again without its snapshot, or with one that names no request', async () => {
    expect(await verdictOf(event, [])).toMatchObject({
      verdict: 'notReplayed',
      reason: `the snapshot ${snapshot.id} is not kept (any more)`,
    });
    const { cells: _, ...bare } = snapshot;
    expect(await verdictOf(event, [bare])).toMatchObject({
      verdict: 'notReplayed',
      reason: 'its snapshot does not say what was asked for',
    });
    expect(event.data.planId).toBe(cellsPlanId('gpu', 'c1'));
  });
});
