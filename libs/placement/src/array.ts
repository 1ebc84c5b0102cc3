/**
 * Elements of typed arrays. An index outside of an array is a mistake of the caller, which a default value would hide. There is
 * one function for each kind of array because the engine compiles a function for the kinds that it has seen.
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

function outside(array: ArrayLike<unknown>, index: number): never {
  throw new RangeError(`no element ${index} in an array of ${array.length}`);
}
