/** A `cooldowns.json` that cannot be used. */
export class CooldownsInvalid extends Error {
  readonly code = 'KRONOS_COOLDOWNS_INVALID';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`cooldowns.json is not usable:\n${problems.map((p) => `  ${p}`).join('\n')}`);
    this.name = 'CooldownsInvalid';
    this.problems = problems;
  }
}
