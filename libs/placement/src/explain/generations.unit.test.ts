import { expect, it } from 'vitest';
import { snapshotOf } from '../../testing/index.ts';
import { generationsOf } from './generations.ts';

const on = (traits: string[] | null) => ({ set: { traits } });
const of = (hosts: Parameters<typeof snapshotOf>[0]['hosts']) =>
  generationsOf(
    snapshotOf({ policies: { cpu: {} }, hosts, vms: { u: { host: 'a' }, v: { host: 'b' }, w: { host: 'b' } } }),
  );

it('names the traits that set newer hosts apart, and the VMs that cannot move back', () => {
  const old = on(['HW_CPU_X86_AVX2']);
  const newer = on(['HW_CPU_X86_AVX2', 'HW_CPU_X86_AVX512F']);
  expect(of({ a: old, b: newer, c: old })).toEqual([
    { traits: ['HW_CPU_X86_AVX512F'], hosts: ['b'], servers: 2, closed: 2 },
    { traits: [], hosts: ['a', 'c'], servers: 1, closed: 0 },
  ]);
});

it('counts hosts of unknown traits as closed, and says nothing where all are alike', () => {
  expect(of({ a: on(['HW_CPU_X86_AVX2']), b: on(null) }).map(({ traits, closed }) => [traits, closed])).toEqual([
    [null, 1],
    [[], 1],
  ]);
  expect(of({ a: on(['CUSTOM_A']), b: on(['HW_CPU_HYPERTHREADING']) })).toEqual([]);
});
