import { describe, expect, it } from 'vitest';
import { decideInput } from '../../testing/index.ts';
import { copyGibOf } from './moveCost.ts';

const MIB = 1024 ** 2;
const server = (id: string) => ({ id, ramMb: 8192, diskGb: 20 });
const options = { moveRateMib: 100 };

/** Two policies that ask `a` and `b`; `dirtied` is what each is answered, in MiB per second. */
function input(dirtied: Readonly<Record<string, Readonly<Record<string, number>>>>, enabled = true) {
  const names = Object.keys(dirtied);
  const { snapshot } = decideInput({
    policies: Object.fromEntries(names.map((name) => [name, { moveCostQuery: `${name}_dirtied`, enabled }])),
    hosts: { h: {} },
    vms: {},
  });
  const moveCostReadings = names.map((name) => ({
    query: `${name}_dirtied`,
    label: 'vm',
    labelType: 'nova_instance_uuid' as const,
    health: 'HEALTHY' as const,
    text: '',
    values: Object.fromEntries(Object.entries(dirtied[name] ?? {}).map(([id, mib]) => [id, mib * MIB])),
    unmatchedLabels: 0,
    ambiguousLabels: 0,
  }));
  return { ...snapshot, moveCostReadings };
}

describe('what a move copies', () => {
  it('is memory and local disk once for a server that writes nothing, and where no policy asks', () => {
    expect(copyGibOf(input({ cpu: { x: 0 } }), {}, options)(server('x'))).toBe(28);
    expect(copyGibOf(input({}), {}, options)(server('x'))).toBe(28);
  });

  it('counts the memory again that is written during the move, by the rate of former moves where that is known', () => {
    const snapshot = input({ cpu: { x: 50 } });
    expect(copyGibOf(snapshot, {}, options)(server('x'))).toBe(8 / (1 - 0.5) + 20);
    expect(copyGibOf(snapshot, { copyBytesPerSecond: 200 * MIB }, options)(server('x'))).toBe(8 / (1 - 0.25) + 20);
  });

  it('is at most ten times the memory', () => {
    expect(copyGibOf(input({ cpu: { x: 5000 } }), {}, options)(server('x'))).toBeCloseTo(80 + 20, 9);
  });

  it('is by the highest rate of several policies, and by none of a policy that is off', () => {
    const two = { cpu: { x: 20 }, memory: { x: 60 } };
    expect(copyGibOf(input(two), {}, options)(server('x'))).toBeCloseTo(8 / 0.4 + 20, 9);
    expect(copyGibOf(input(two, false), {}, options)(server('x'))).toBe(28);
  });

  it('of a server without a value is that of one that writes most, and memory once where no server has a value', () => {
    expect(copyGibOf(input({ cpu: { y: 50, z: 10 } }), {}, options)(server('x'))).toBe(36);
    expect(copyGibOf(input({ cpu: {} }), {}, options)(server('x'))).toBe(28);
    expect(copyGibOf({ ...input({ cpu: { y: 50 } }), moveCostReadings: [] }, {}, options)(server('x'))).toBe(28);
  });
});
