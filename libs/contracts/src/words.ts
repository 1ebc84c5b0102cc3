/** `1 move`, `3 moves`. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** `a, b and 3 more`: at most that many names, and how many are left out. */
export const some = (names: readonly string[], most = 5): string =>
  names.length <= most ? names.join(', ') : `${names.slice(0, most).join(', ')} and ${names.length - most} more`;
