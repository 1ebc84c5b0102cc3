/** A file that is no evidence, or cannot be read as such; the message names what is wrong in it. */
export class EvidenceInvalid extends Error {
  readonly code = 'KRONOS_EVIDENCE_INVALID';
  readonly remedy: string | undefined;

  constructor(file: string, problem: string, remedy?: string, options?: ErrorOptions) {
    super(`${file}: ${problem}`, options);
    this.name = 'EvidenceInvalid';
    this.remedy = remedy;
  }
}

/** The evidence would be larger than a file to attach may be. */
export class EvidenceTooLarge extends Error {
  readonly code = 'KRONOS_EVIDENCE_TOO_LARGE';
  readonly remedy =
    'Give a shorter range (--since, --until), one aggregate (-a), or one plan (--plan). Loads with all their digits take the most: round(QUERY, 0.001) in the policies keeps later files small.';

  /** @param fit about how many of the snapshots would fit */
  constructor({ bytes, most, snapshots, fit }: Readonly<Record<'bytes' | 'most' | 'snapshots' | 'fit', number>>) {
    super(
      `the evidence takes ${(bytes / 1e6).toFixed(1)} MB, more than ${(most / 1e6).toFixed(0)} MB: about ${fit} of its ${snapshots} snapshots fit`,
    );
    this.name = 'EvidenceTooLarge';
  }
}

/** A key that cannot sign, or check a signature. */
export class EvidenceKey extends Error {
  readonly code = 'KRONOS_EVIDENCE_KEY';
  readonly remedy =
    'Make one with: openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out public.pem';

  constructor(file: string, problem: string) {
    super(`${file}: ${problem}`);
    this.name = 'EvidenceKey';
  }
}
