import {
  type Contradiction,
  contradiction,
  describeContradiction,
  inForce,
  type LogIdentity,
  STATEMENT_REMEDY,
  type Witness,
} from '@kronos/projections';

const keyOf = ({ source, installationId, sequence }: Witness): string => `${source} ${installationId} ${sequence}`;

/** Everything that contradicts the log that is read. Pure: the guard reads the log, and this class judges. */
export class Doubts {
  readonly #needsLedger: boolean;
  readonly #contradictions = new Map<string, Contradiction>();
  /** Installations that the ledger folds, by its own statements. */
  readonly #folded = new Set<string | null>();
  #identity: LogIdentity;
  #condemned: string | null = null;

  constructor(identity: LogIdentity, { needsLedger }: { readonly needsLedger: boolean }) {
    this.#identity = identity;
    this.#needsLedger = needsLedger;
  }

  get identity(): LogIdentity {
    return this.#identity;
  }

  /** The log's identity was read again. Witnesses that it contradicted are judged again by {@link judgeAgain}. */
  read(identity: LogIdentity): void {
    this.#identity = identity;
  }

  /** Judges a witness, and remembers a statement of the ledger. */
  note(witness: Witness): void {
    if (witness.source === 'the ledger') this.#folded.add(witness.installationId);
    this.#judge(witness);
  }

  judgeAgain(): void {
    for (const { witness } of [...this.#contradictions.values()]) this.#judge(witness);
  }

  /** Events that the witness has seen are gone. This holds until the witness is judged again. */
  lost(witness: Witness): void {
    this.#contradictions.set(keyOf(witness), { kind: 'shorter', witness });
  }

  /** The log stays in doubt for this reason. */
  condemn(reason: string): void {
    this.#condemned = reason;
  }

  agrees(witness: Witness): boolean {
    return contradiction(this.#identity, witness) === null;
  }

  /** The reason that the log is in doubt, with the remedy; null: it is not in doubt. */
  problem(): string | null {
    if (this.#condemned !== null) return this.#condemned;
    const [worst] = [...this.#contradictions.values()].sort((a, b) => b.witness.sequence - a.witness.sequence);
    if (worst !== undefined) return `${describeContradiction(this.#identity, worst)}. ${STATEMENT_REMEDY}`;
    const current = inForce(this.#identity);
    if (this.#needsLedger && current?.statement === 'provisioned' && !this.#folded.has(current.id))
      return `the ledger has not compared its archive with the log of installation ${current.id} yet: start the ledger, or look why it is not ready. If there is no archive any more: kronos provision --new-log.`;
    return null;
  }

  #judge(witness: Witness): void {
    const found = contradiction(this.#identity, witness);
    if (found === null) this.#contradictions.delete(keyOf(witness));
    else this.#contradictions.set(keyOf(witness), found);
  }
}
