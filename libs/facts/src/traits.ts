import type { ServerObservation } from '@kronos/contracts';

/** The traits that a flavor asks of a host. */
export function traitsOf(
  { extraSpecs }: Pick<ServerObservation, 'extraSpecs'>,
  wanted: 'required' | 'forbidden',
): string[] {
  const traits: string[] = [];
  for (const key of Object.keys(extraSpecs)) {
    if (extraSpecs[key] !== wanted) continue;
    const trait = /^trait\d*:(.+)$/.exec(key)?.[1];
    if (trait !== undefined) traits.push(trait);
  }
  return traits;
}

/**
 * Whether a host with these traits may take a server that asks for some.
 *
 * @param traits null: not known
 * @returns null when the server asks for traits and those of the host are not known
 */
export function traitsFit(
  traits: readonly string[] | null,
  { requiredTraits, forbiddenTraits }: { requiredTraits: readonly string[]; forbiddenTraits: readonly string[] },
): boolean | null {
  if (requiredTraits.length + forbiddenTraits.length === 0) return true;
  if (traits === null) return null;
  return (
    requiredTraits.every((trait) => traits.includes(trait)) && !forbiddenTraits.some((trait) => traits.includes(trait))
  );
}
