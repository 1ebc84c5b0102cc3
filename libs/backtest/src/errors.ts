/** The directory cannot hold this backtest. */
export class BacktestDirectory extends Error {
  readonly code = 'KRONOS_BACKTEST_DIRECTORY';
  readonly remedy: string;

  constructor(directory: string, problem: string, remedy: string) {
    super(`${directory}: ${problem}`);
    this.name = 'BacktestDirectory';
    this.remedy = remedy;
  }
}

/** There is nothing to test on. */
export class NothingToTest extends Error {
  readonly code = 'KRONOS_BACKTEST_NOTHING';
  readonly remedy: string;

  constructor(problem: string, remedy: string) {
    super(problem);
    this.name = 'NothingToTest';
    this.remedy = remedy;
  }
}
