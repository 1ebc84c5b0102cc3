import type { ServerObservation } from '@kronos/contracts';

/** The trait of a host on whose cores Placement sees several threads. */
const THREADS = 'HW_CPU_HYPERTHREADING';

/** The trait that Nova asks for in Placement because of `hw:cpu_thread_policy`: nova/scheduler/utils.py, _translate_pinning_policies. */
function threadTrait(extraSpecs: ServerObservation['extraSpecs'], wanted: 'required' | 'forbidden'): string[] {
  const policy = extraSpecs['hw:cpu_policy'];
  if (policy !== 'dedicated' && policy !== 'mixed') return [];
  return extraSpecs['hw:cpu_thread_policy'] === (wanted === 'required' ? 'require' : 'isolate') ? [THREADS] : [];
}

/** The traits that a flavor asks of a host. */
export function traitsOf(
  { extraSpecs }: Pick<ServerObservation, 'extraSpecs'>,
  wanted: 'required' | 'forbidden',
): string[] {
  const traits = threadTrait(extraSpecs, wanted);
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

/** The traits of CPUs among those of a host, sorted. That it shows threads says nothing about what guests may use. */
export const cpuTraits = (traits: readonly string[]): string[] =>
  traits.filter((trait) => trait.startsWith('HW_CPU_') && trait !== THREADS).sort();

/** Whether guests that may use everything of one host's CPUs can run on those of another. Unknown traits fit nothing. */
export function cpuFits(from: readonly string[] | null, to: readonly string[] | null): boolean {
  if (from === null || to === null) return false;
  return cpuTraits(from).every((trait) => to.includes(trait));
}
