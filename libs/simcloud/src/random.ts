/** A seeded source of numbers: the same seed gives the same sequence on every machine. */
export interface SeededRandom {
  /** A number in [0, 1). */
  next(): number;
  /** An integer in [from, to], both included. */
  int(from: number, to: number): number;
  /** One of the items; throws RangeError on an empty list. */
  pick<T>(items: readonly T[]): T;
  /** A random (version 4) uuid. */
  uuid(): string;
  /** Lower-case letters and digits. */
  word(length: number): string;
}

/** mulberry32: 32 bits of state, good enough for a simulation. */
export function random(seed: number): SeededRandom {
  let state = seed >>> 0;
  const bits = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  const next = (): number => bits() / 0x1_0000_0000;
  const hex = (): string => bits().toString(16).padStart(8, '0');
  return {
    next,
    int: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new RangeError('cannot pick from an empty list');
      return item;
    },
    uuid: () => {
      const [a, b, c, d] = [hex(), hex(), hex(), hex()];
      const variant = ((Number.parseInt(c.charAt(0), 16) & 0x3) | 0x8).toString(16);
      return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${variant}${c.slice(1, 4)}-${c.slice(4)}${d}`;
    },
    word: (length) => {
      const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
      let out = '';
      for (let i = 0; i < length; i++) out += letters.charAt(bits() % letters.length);
      return out;
    },
  };
}
