/** Files that are mutated, and the tests that must notice. Paths are relative to the root of the project; a folder stands for all in it. */
export interface Area {
  readonly files: readonly string[];
  /** Filters of vitest, in the order in which they are tried: a mutant that an earlier group notices needs no later one. */
  readonly tests: readonly (readonly string[])[];
}

export const AREAS: Readonly<Record<string, Area>> = {
  placement: {
    files: ['libs/placement/src'],
    tests: [['libs/placement/src', 'test/golden'], ['test/property']],
  },
  projections: {
    files: ['libs/projections/src', 'libs/rules/src'],
    tests: [
      ['libs/projections/src', 'libs/rules/src'],
      ['libs/status/src', 'libs/placement/src/gate'],
    ],
  },
  executor: {
    files: [
      'libs/facts/src/groups.ts',
      'libs/facts/src/units.ts',
      'services/executor/src/attemptLog.ts',
      'services/executor/src/board.ts',
      'services/executor/src/cells/checks.ts',
      'services/executor/src/cells/outcome.ts',
      'services/executor/src/cells/preflight.ts',
      'services/executor/src/cells/task.ts',
      'services/executor/src/deadline.ts',
      'services/executor/src/failure.ts',
      'services/executor/src/preflight.ts',
      'services/executor/src/preflightRules.ts',
      'services/executor/src/startRule.ts',
      'services/executor/src/task.ts',
      'services/executor/src/taskEnd.ts',
      'services/executor/src/taskProgress.ts',
      'services/executor/src/taskStages.ts',
      'services/executor/src/taskStart.ts',
      'services/executor/src/trials.ts',
    ],
    tests: [
      [
        'libs/facts/src/units.unit',
        'services/executor/src/attemptLog.unit',
        'services/executor/src/board.unit',
        'services/executor/src/cells/preflight.unit',
        'services/executor/src/cells/task.unit',
        'services/executor/src/deadline.unit',
        'services/executor/src/preflight.unit',
        'services/executor/src/startRule.unit',
        'services/executor/src/task',
        'services/executor/src/trials.unit',
      ],
      ['services/executor/src/act.unit', 'services/executor/src/events.unit', 'services/executor/src/deadLetter.unit'],
    ],
  },
  eventlog: {
    files: [
      'libs/eventlog/src/log/append.ts',
      'libs/eventlog/src/admin/window.ts',
      'libs/eventlog/src/wire/deadline.ts',
      'libs/eventlog/src/log/channel.ts',
      'libs/eventlog/src/queue/tasks.ts',
    ],
    tests: [
      [
        'libs/eventlog/src/log/append.unit',
        'libs/eventlog/src/admin/window.unit',
        'libs/eventlog/src/wire/deadline.unit',
        'libs/eventlog/src/log/channel.unit',
        'libs/eventlog/src/queue/tasks.unit',
      ],
      ['libs/eventlog/testing/simulated/contract.unit'],
      ['libs/eventlog/src/log/append.int', 'libs/eventlog/src/queue/tasks.int', 'libs/eventlog/src/contract.int'],
    ],
  },
};

/** The minimum percentage of mutants that the tests of each area must notice. */
export const LEAST = 85;
