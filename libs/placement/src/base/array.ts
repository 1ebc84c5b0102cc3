/**
 * Elements of typed arrays, lists and maps. An index or a key that does not exist is an error of the caller. A default value would hide
 * it. Each kind of array has its own function, because the engine optimises a function for the kinds of arrays that it has seen.
 */

/** @throws RangeError when there is no such element. */
export function float(array: Float64Array, index: number): number {
  const value = array[index];
  return value === undefined ? outside(array, index) : value;
}

/** @throws RangeError when there is no such element. */
export function int(array: Int32Array, index: number): number {
  const value = array[index];
  return value === undefined ? outside(array, index) : value;
}

/** @throws RangeError when there is no such element. */
export function byte(array: Uint8Array, index: number): number {
  const value = array[index];
  return value === undefined ? outside(array, index) : value;
}

/**
 * Element of a list.
 *
 * @throws RangeError when there is no such element.
 */
export function item<T extends object | number | string>(list: readonly T[], index: number): T {
  const value = list[index];
  return value === undefined ? outside(list, index) : value;
}

/**
 * Value of a map.
 *
 * @throws RangeError when the map has no such key.
 */
export function entry<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const value = map.get(key);
  if (value === undefined) throw new RangeError(`no entry ${String(key)} in a map of ${map.size}`);
  return value;
}

function outside(array: ArrayLike<unknown>, index: number): never {
  throw new RangeError(`no element ${index} in an array of ${array.length}`);
}
