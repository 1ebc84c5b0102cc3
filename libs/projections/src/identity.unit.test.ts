import { describe, expect, it } from 'vitest';
import { carriedMark, contradiction, installationAt, type LogIdentity, SETTLE_MS, type Witness } from './identity.ts';

const at = (minutes: number): number => Date.UTC(2026, 0, 5) + minutes * 60_000;
const one = (id: string, sequence: number, minutes: number, statement: 'provisioned' | 'newLog' | 'restored') => ({
  id,
  sequence,
  storedAtMs: at(minutes),
  statement,
});
const log = (lastSequence: number, ...installations: LogIdentity['installations'][number][]): LogIdentity => ({
  installations,
  lastSequence,
});
const seen = (installationId: string | null, sequence: number, minutes: number): Witness => ({
  source: 'the checkpoint of gpu',
  installationId,
  sequence,
  seenAtMs: at(minutes),
});
const born = one('a', 1, 0, 'provisioned');

describe('a log that is the one that was seen', () => {
  it('contradicts nothing: of its own id, as long as it is or longer', () => {
    expect(contradiction(log(60, born), seen('a', 60, 5))).toBeNull();
    expect(contradiction(log(61, born), seen('a', 60, 5))).toBeNull();
  });
  it('may have got its id late', () => {
    const late = log(60, one('a', 50, 10, 'provisioned'));
    expect(contradiction(late, seen(null, 40, 5))).toBeNull();
    expect(contradiction(late, seen('a', 60, 12))).toBeNull();
  });
  it('may have none yet', () => {
    expect(contradiction(log(60), seen(null, 60, 5))).toBeNull();
  });
});

describe('a log that was wiped or has lost events', () => {
  it('contradicts what has seen another installation, however short that was', () => {
    expect(contradiction(log(60, one('b', 1, 10, 'provisioned')), seen('a', 1571, 5))?.kind).toBe('other');
    expect(contradiction(log(60, one('b', 1, 10, 'provisioned')), seen('a', 3, 5))?.kind).toBe('other');
    expect(contradiction(log(60), seen('a', 3, 5))?.kind).toBe('other');
  });
  it('contradicts what has seen a log without an id, when it was born with one', () => {
    expect(contradiction(log(60, one('b', 1, 10, 'provisioned')), seen(null, 3, 5))?.kind).toBe('other');
  });
  it('contradicts what has seen more of it', () => {
    expect(contradiction(log(60, born), seen('a', 61, 5))?.kind).toBe('shorter');
    expect(contradiction(log(60), seen(null, 61, 5))?.kind).toBe('shorter');
    expect(contradiction(log(0), seen(null, 1571, 5))?.kind).toBe('shorter');
  });
});

describe('a statement', () => {
  it('settles what was seen before it, of any log', () => {
    for (const statement of ['newLog', 'restored'] as const) {
      const stated = log(60, born, one('b', 60, 10, statement));
      for (const id of ['a', 'z', null]) expect(contradiction(stated, seen(id, 1571, 9))).toBeNull();
    }
  });
  it('settles what a process saw that had not read it yet, and nothing later', () => {
    const stated = log(60, one('b', 1, 10, 'newLog'));
    expect(contradiction(stated, { ...seen('a', 1571, 10), seenAtMs: at(10) + SETTLE_MS })).toBeNull();
    expect(contradiction(stated, { ...seen('a', 1571, 10), seenAtMs: at(10) + SETTLE_MS + 1 })?.kind).toBe('other');
    expect(contradiction(stated, seen('b', 61, 20))?.kind).toBe('shorter');
  });
  it('is none when it only says that the log was provisioned', () => {
    expect(contradiction(log(60, one('b', 1, 10, 'provisioned')), seen('a', 1571, 9))).not.toBeNull();
  });
  it('leaves an earlier id of the log known', () => {
    expect(contradiction(log(90, born, one('b', 60, 10, 'restored')), seen('a', 1571, 30))).toBeNull();
  });
});

it('the id in force at a sequence is that of the last statement up to it', () => {
  const stated = log(90, one('a', 5, 0, 'provisioned'), one('b', 60, 10, 'restored'));
  expect([1, 4, 5, 59, 60, 90].map((sequence) => installationAt(stated, sequence))).toEqual([
    null,
    null,
    'a',
    'a',
    'b',
    'b',
  ]);
});

describe('the log that a new witness states', () => {
  it('is the log as it is, when nothing before contradicts it', () => {
    expect(carriedMark(log(9, born), null)).toEqual({ installationId: 'a', sequence: 9 });
    expect(carriedMark(log(9, born), seen('a', 8, 5))).toEqual({ installationId: 'a', sequence: 9 });
    expect(carriedMark(log(9), seen(null, 8, 5))).toEqual({ installationId: null, sequence: 9 });
  });

  it('is the one that the witness before it has seen, while nobody has stated another', () => {
    const other = one('b', 1, 10, 'provisioned');
    const before = seen('a', 8, 5);
    expect(carriedMark(log(3, other), before)).toEqual({ installationId: 'a', sequence: 8 });
    expect(carriedMark(log(7, born), before)).toEqual({ installationId: 'a', sequence: 8 });
  });

  it('is the stated one from the statement on', () => {
    expect(carriedMark(log(3, one('b', 1, 10, 'newLog')), seen('a', 8, 9))).toEqual({
      installationId: 'b',
      sequence: 3,
    });
  });
});
