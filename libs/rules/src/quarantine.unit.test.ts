import { describe, expect, it } from 'vitest';
import { quarantine, quarantines } from './quarantine.ts';

const s = (seconds: number): number => seconds * 1000;
const failure = (at: number) => ({ cause: 'failure' as const, atMs: s(at), seconds: null });
const operator = (at: number, seconds: number) => ({ cause: 'operator' as const, atMs: s(at), seconds });

describe('a final failure', () => {
  it('acts: quarantines the VM when the VM may be at fault, or when nobody knows', () => {
    for (const type of ['PreFlightError', 'MigrationFailed', 'MigrationTimeout', 'SomethingNew'])
      expect(quarantines(type)).toBe(true);
  });

  it('refuses: a fault that is charged to a destination, the scheduler or an operator quarantines no VM', () => {
    for (const cause of ['destination', 'room', 'group', 'scheduler', 'operator', 'source', 'nova'])
      expect(quarantines('PreFlightError', cause)).toBe(false);
    for (const cause of ['server', 'unknown', 'of a later version'])
      expect(quarantines('PreFlightError', cause)).toBe(true);
    expect(quarantines('NovaClientError', 'server')).toBe(false);
  });

  it('does nothing: infrastructure, people and poison messages say nothing about the VM', () => {
    for (const type of ['NovaClientError', 'Cancelled', 'DeadLetter']) expect(quarantines(type)).toBe(false);
  });
});

describe('the quarantine of a VM', () => {
  const options = { instanceQuarantineSeconds: 3600 };

  it('acts: after a failure for instance_quarantine_seconds, by an operator for as long as asked', () => {
    expect(quarantine([failure(10)], s(3609), options)).toEqual({
      cause: 'failure',
      sinceMs: s(10),
      untilMs: s(3610),
    });
    expect(quarantine([operator(10, 60)], s(69), options)).toMatchObject({ cause: 'operator', untilMs: s(70) });
  });

  it('acts: with -1 until an operator releases it', () => {
    expect(quarantine([failure(10)], s(1e9), { instanceQuarantineSeconds: -1 })?.untilMs).toBeNull();
    expect(quarantine([operator(10, -1)], s(1e9), options)?.untilMs).toBeNull();
  });

  it('acts: of several causes the one that lasts longest, of equal ones the operator, in any order', () => {
    const causes = (all: Parameters<typeof quarantine>[0], how = options) =>
      [all, [...all].reverse()].map((each) => quarantine(each, s(20), how)?.cause);
    expect(causes([failure(10), operator(20, 60)])).toEqual(['failure', 'failure']);
    expect(causes([failure(10), operator(20, 9000)])).toEqual(['operator', 'operator']);
    expect(causes([failure(10), operator(10, 3600)])).toEqual(['operator', 'operator']);
    expect(causes([failure(10), operator(20, -1)], { instanceQuarantineSeconds: -1 })).toEqual([
      'operator',
      'operator',
    ]);
  });

  it('refuses: one that ends by itself lasts at most 7 days after a failure', () => {
    expect(quarantine([failure(0)], 0, { instanceQuarantineSeconds: 9e9 })?.untilMs).toBe(s(7 * 86_400));
  });

  it('does nothing: when it has ended, and without a cause', () => {
    expect(quarantine([failure(10), operator(10, 60)], s(3610), options)).toBeNull();
    expect(quarantine([], 0, options)).toBeNull();
  });
});
