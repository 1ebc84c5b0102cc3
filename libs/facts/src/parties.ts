/** The parties that can be at fault for a refusal or a failure, and what follows from each. */

interface Consequences {
  /** A final failure quarantines the VM. */
  readonly quarantines: boolean;
  /** The failure counts for the breaker of the destination. */
  readonly chargesHost: boolean;
  /** Nova's refusal of the destination is remembered for servers of this shape. */
  readonly remembered: boolean;
  readonly meaning: string;
}

const NOBODY = { quarantines: false, chargesHost: false, remembered: false } as const;

/**
 * A fault is charged to its cause: a VM's fault opens no host's breaker, a host's fault quarantines no VM, and an operator's act
 * charges nobody. Alternates, retries, quarantine, breaker, texts and the documentation read this one table.
 */
export const parties = {
  server: { ...NOBODY, quarantines: true, meaning: 'The state or the kind of the server.' },
  source: { ...NOBODY, meaning: "The source's nova-compute." },
  destination: { ...NOBODY, chargesHost: true, meaning: "The destination's nova-compute or hypervisor." },
  room: { ...NOBODY, meaning: 'The free room of the destination.' },
  group: { ...NOBODY, meaning: 'A rule of a server group.' },
  scheduler: {
    ...NOBODY,
    remembered: true,
    meaning: "A rule of Nova's scheduler, or a check of the computes, for this kind of server on this destination.",
  },
  nova: { ...NOBODY, meaning: "Nova's control plane: its API, message bus or database." },
  network: { ...NOBODY, meaning: "The network: Neutron, or the server's ports." },
  operator: { ...NOBODY, meaning: 'A person, or a rule that a person has set.' },
  client: { ...NOBODY, meaning: 'Another client of Nova.' },
  kronos: { ...NOBODY, meaning: 'Kronos: the task or its plan.' },
  unknown: {
    quarantines: true,
    chargesHost: true,
    remembered: false,
    meaning: 'Unknown. To be safe, the failure counts for the server and for the destination.',
  },
} as const satisfies Record<string, Consequences>;

export type Party = keyof typeof parties;

/** The consequences by a party that an event names. A party of a later version counts as unknown. */
export const consequencesOf = (party: string): Consequences =>
  Object.hasOwn(parties, party) ? parties[party as Party] : parties.unknown;
