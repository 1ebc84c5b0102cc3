/**
 * The element of a typed array. An index outside of it is a mistake of the caller that a default value would hide.
 *
 * @throws RangeError when there is no such element.
 */
export function at(array: Float64Array | Int32Array | Uint8Array, index: number): number {
  const value = array[index];
  if (value === undefined) throw new RangeError(`no element ${index} in an array of ${array.length}`);
  return value;
}
