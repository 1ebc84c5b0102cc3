import { nearest } from '@kronos/config/nearest';

/** `Did you mean "compute-07"? `, or nothing where no name is near. */
export function didYouMean(name: string, names: readonly string[]): string {
  const near = nearest(name, names);
  return near === null ? '' : `Did you mean ${JSON.stringify(near)}? `;
}
