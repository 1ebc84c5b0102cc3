import { describe, expect, it } from 'vitest';

const { digitsBeside, edgesOf, lineText, listed, measureText, shareText, sharesText, withoutDomain } = await import(
  new URL('./words.js', import.meta.url).href
);

describe('a value of a host in words', () => {
  it('is a share of what the host has', () => {
    expect([shareText(0.47), shareText(0.4749, 1), shareText(null)]).toEqual(['47 %', '47.5 %', 'unknown']);
    expect(edgesOf({ low: -0.04, high: 0.36 })).toBe('0 to 36 %');
  });

  it('has a decimal where it would be written as the edge of the band beside which it is', () => {
    const band = { low: 0.02, high: 0.221 };
    expect(digitsBeside(band, [0.224, 0.1], ['warm', 'even'])).toBe(1);
    expect(digitsBeside(band, [0.017, 0.1], ['cold', 'even'])).toBe(1);
    expect(digitsBeside(band, [0.22, 0.24, 0.224, null], ['even', 'warm', 'closed-host', 'none'])).toBe(0);
    expect(digitsBeside(null, [null], ['none'])).toBe(0);
    expect([shareText(0.224, 1), edgesOf(band, 1), sharesText(0.224, 0.2, 1)]).toEqual([
      '22.4 %',
      '2.0 to 22.1 %',
      '22.4 → 20.0 %',
    ]);
  });

  it('that changes is both values; one where nobody sees the change', () => {
    expect([sharesText(0.43, 0.27), sharesText(0.432, 0.429)]).toEqual(['43 → 27 %', '43 %']);
  });

  it('says what it is a share of: what is in use, what is allocated, or the most VMs', () => {
    expect(measureText({ policy: 'cpu', allocation: null })).toBe(
      'cpu: the share of the host that is in use, as the metrics of the policy say.',
    );
    expect(measureText({ policy: 'vcpus', allocation: 'VCPU' })).toContain(
      "the host's VCPU that is allocated in Placement",
    );
    expect(measureText({ policy: 'vms', allocation: 'instances' })).toContain('as a share of the host with the most');
  });
});

it('a multiple of a threshold that counts moves under way as done is not taken for a measured one', () => {
  expect([lineText('cpu', 2.136, false), lineText('cpu', 0.9, true)]).toEqual(['cpu 2.14×', 'cpu 0.90×, moves done']);
});

it('names are listed as in a sentence', () => {
  expect([[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map(listed)).toEqual(['', 'a', 'a and b', 'a, b and c']);
});

it('hosts have short names in pictures where all are of one domain', () => {
  const short = (names: readonly string[]) => names.map(withoutDomain(names));
  expect(short(['c-1.east.example.org', 'c-2.east.example.org'])).toEqual(['c-1', 'c-2']);
  for (const names of [['c-1.east', 'c-1.west'], ['c-1', 'c-2'], ['c-1.east', 'c-2'], []])
    expect(short(names)).toEqual(names);
});
