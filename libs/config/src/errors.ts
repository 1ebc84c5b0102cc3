import { count } from '@kronos/contracts/words';

/** One thing that is wrong with the configuration. */
export interface Problem {
  /** The file, or `environment` for an override. */
  readonly file: string;
  /** 1-based; null where no single line is at fault. */
  readonly line: number | null;
  /** `[engine] cooldown`, `OS_ENGINE__COOLDOWN`, `policies[0] "cpu" threshold`; null where the whole file is at fault. */
  readonly option: string | null;
  readonly problem: string;
  /** The remedy. */
  readonly remedy: string;
}

/** One problem as people read it: place, what is wrong, what to do. */
export function renderProblem(problem: Problem): string {
  const place = problem.line === null ? problem.file : `${problem.file}:${problem.line}`;
  const option = problem.option === null ? '' : ` ${problem.option}:`;
  return `${place}:${option} ${problem.problem}\n    ${problem.remedy}`;
}

/**
 * The configuration cannot be used. Holds every problem at once; `message` is the whole text for people, and no
 * value of a secret option is ever part of it.
 */
export class ConfigError extends Error {
  readonly code = 'KRONOS_CONFIG';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(
      `the configuration has ${count(problems.length, 'problem')}:\n\n${problems.map((p) => `  ${renderProblem(p)}`).join('\n')}`,
    );
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
