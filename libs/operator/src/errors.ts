/** A command names something that is not there, or that the state does not allow. Nothing was appended. */
export class CommandRefused extends Error {
  readonly code = 'KRONOS_COMMAND_REFUSED';
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string) {
    super(message);
    this.name = 'CommandRefused';
    this.remedy = remedy;
  }
}

/** The clock of this machine is too wrong for a command whose time matters. */
export class ClockWrong extends Error {
  readonly code = 'KRONOS_CLOCK_WRONG';
}
