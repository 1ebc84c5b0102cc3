import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { common } from './test/common.ts';

const ALL = '{libs,services,test,scripts}/**/*.{unit,int,e2e}.test.ts';
/** Long tests of whole programs. Each file has a process for itself, which costs little beside what it takes. */
const PROGRAMS = '{libs,services,test,scripts}/**/*.e2e.test.ts';
/**
 * Tests of what a process has once: its log, its metrics, its tracing, the ports that it holds. Each file has a process for itself,
 * too. All others share the workers and the modules that these have loaded: a process for each of 256 files took a tenth of the CPU
 * of a whole run.
 */
const OF_THE_PROCESS = [
  'libs/telemetry/src/{log,metrics,telemetry}.unit.test.ts',
  'libs/connect/src/instrumented.int.test.ts',
  'libs/eventlog/src/local/ports.unit.test.ts',
];
const ALONE = [PROGRAMS, ...OF_THE_PROCESS];

/** Unit tests that compute for many seconds: simulations, replays, properties, plans on record. */
const COMPUTING =
  /\/(test\/(simulation|replay|property|golden|bench)|libs\/(replay|archive|projections))\/.*\.unit\.test\.ts$/;
/** Kinds of tests, the longest first: a file of minutes that starts last makes all the others wait for it. */
const KINDS = [/\/test\/.*\.e2e\.test\.ts$/, /\.e2e\.test\.ts$/, COMPUTING, /\.int\.test\.ts$/];
const rank = ({ moduleId, project }: TestSpecification): number => {
  const kind = KINDS.findIndex((pattern) => pattern.test(moduleId));
  // Int and unit tests that share their workers follow one another, or the workers would end between them.
  if (project.config.isolate && !moduleId.endsWith('.e2e.test.ts')) return KINDS.length + 1;
  return kind === -1 ? KINDS.length : kind;
};

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    ...common,
    projects: [
      {
        extends: true,
        test: { name: 'shared', include: [ALL], exclude: [...configDefaults.exclude, ...ALONE], isolate: false },
      },
      { extends: true, test: { name: 'alone', include: ALONE, isolate: true } },
    ],
    setupFiles: ['test/property/seed.ts', 'test/secrets.ts'],
    // Node loads the modules as it loads those of the services. No test replaces a module.
    experimental: { viteModuleRunner: false },
    sequence: { sequencer: LongestFirst },
    // Where CI is set, also a report that others read. `--reporter` replaces both.
    ...(process.env.CI && { reporters: [...configDefaults.reporters, ['junit', { outputFile: 'reports/junit.xml' }]] }),
    // Far beyond what a test takes: they end only what hangs, also on a machine that is busy with other work.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 600_000 } },
    // Two cores carry eight: most files wait for servers, leases and polls.
    maxWorkers: 8,
  },
});
