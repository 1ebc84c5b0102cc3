import { describe, expect, it } from 'vitest';
import { ConfigError } from './errors.ts';
import { DEFAULT_CONFIG_FILE, type LoadInput, loadConfig } from './load.ts';
import { policiesSample } from './sample.ts';

const load = (files: Record<string, string>, input: Omit<LoadInput, 'readFile'>) =>
  loadConfig({
    ...input,
    readFile: (path) => {
      const content = files[path];
      if (content === undefined) throw Object.assign(new Error(`no ${path}`), { code: 'ENOENT' });
      return content;
    },
  });

const problemsOf = (fn: () => unknown): readonly string[] => {
  try {
    fn();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((p) => `${p.file} ${p.option}: ${p.problem}`);
    throw error;
  }
  return [];
};

const SCOPE = '[engine]\naggregates = gpu\n';
const FULL = `${SCOPE}policies_file = /p.yaml\n[nova]\ncloud = prod\n[prometheus]\nurl = http://p:9090\n`;

describe('loading the configuration', () => {
  it('reads the policies for those who need them', () => {
    const files = { '/k.conf': FULL, '/p.yaml': policiesSample() };
    expect(
      load(files, { file: '/k.conf', env: {}, role: 'scorer' })
        .policiesOf('gpu')
        .map((p) => p.name),
    ).toEqual(['cpu', 'memory']);
    expect(load(files, { file: '/k.conf', env: {}, role: 'check' }).policiesOf('gpu')).toHaveLength(2);
    expect(load({ '/k.conf': FULL }, { file: '/k.conf', env: {}, role: 'executor' }).policiesOf('gpu')).toEqual([]);
    expect(
      load({ '/k.conf': FULL }, { file: '/k.conf', env: { OS_ENGINE__BALANCE: 'false' }, role: 'scorer' }).policiesOf(
        'gpu',
      ),
    ).toEqual([]);
  });

  it('says where each option was set', () => {
    const { sources } = load(
      { '/k.conf': SCOPE },
      { file: '/k.conf', env: { OS_LOG__LEVEL: 'warn' }, role: 'planner' },
    );
    expect(Object.fromEntries(sources)).toEqual({
      'engine.aggregates': { file: '/k.conf', line: 2, option: '[engine] aggregates' },
      'log.level': { file: 'environment', line: null, option: 'OS_LOG__LEVEL' },
    });
  });

  it('does without the default file, and not without one that was named', () => {
    const env = { OS_ENGINE__AGGREGATES: 'gpu' };
    expect(load({}, { env, role: 'planner' }).config.engine.aggregates).toEqual(['gpu']);
    expect(load({ [DEFAULT_CONFIG_FILE]: SCOPE }, { env: {}, role: 'planner' }).config.engine.aggregates).toEqual([
      'gpu',
    ]);
    expect(problemsOf(() => load({}, { file: '/k.conf', env, role: 'planner' }))).toEqual([
      '/k.conf null: the file cannot be read: there is no such file',
    ]);
  });

  it('reports only the default file where nothing else is set', () => {
    const missing = `${DEFAULT_CONFIG_FILE} null: the file is not there`;
    for (const role of ['cli', 'scorer', 'check'] as const)
      expect(problemsOf(() => load({}, { env: {}, role }))).toEqual([missing]);
    expect(problemsOf(() => load({}, { env: { OS_LOG__LEVEL: 'warn' }, role: 'cli' }))).toEqual([
      missing,
      expect.stringContaining('[engine] aggregates'),
    ]);
  });

  it('reports the problems of both files at once', () => {
    const files = { '/k.conf': `${FULL}[log]\nlevel = loud\n`, '/p.yaml': 'policies: []\n' };
    expect(problemsOf(() => load(files, { file: '/k.conf', env: {}, role: 'check' }))).toEqual([
      '/k.conf [log] level: "loud" is not one of its values',
      '/p.yaml policies: no policy is enabled',
    ]);
  });

  it('needs Prometheus where a policy asks it, and where policies are unknown, and reports a broken url once', () => {
    const conf = FULL.replace('[prometheus]\nurl = http://p:9090\n', '');
    const allocation =
      'policies:\n- {name: ram, mode: spread, weight: 1, threshold: 0.2, source: allocation, resource_class: MEMORY_MB}\n';
    const problems = (policies: string, text = conf, env = {}) =>
      problemsOf(() => load({ '/k.conf': text, '/p.yaml': policies }, { file: '/k.conf', env, role: 'scorer' }));
    const missing = '/k.conf [prometheus] url: is not set';
    expect(problems(policiesSample())).toEqual([missing]);
    expect(problems(allocation)).toEqual([]);
    expect(problems('nonsense')).toContain(missing);
    expect(problems('nonsense', conf, { OS_ENGINE__BALANCE: 'false' })).toEqual([]);
    expect(problems(policiesSample(), `${conf}[prometheus]\nurl = ftp://p\n`)).toHaveLength(1);
    expect(problemsOf(() => load({ '/k.conf': conf }, { file: '/k.conf', env: {}, role: 'executor' }))).toEqual([]);
  });

  it('says which option names a policies file that is not there', () => {
    expect(problemsOf(() => load({ '/k.conf': FULL }, { file: '/k.conf', env: {}, role: 'scorer' }))).toEqual([
      '/p.yaml null: the file, named by [engine] policies_file (/k.conf:3), cannot be read: there is no such file',
    ]);
  });

  it('reads from the file system', () => {
    expect(problemsOf(() => loadConfig({ file: import.meta.dirname, env: {}, role: 'cli' }))[0]).toContain(
      'cannot be read: it is a directory',
    );
  });
});
