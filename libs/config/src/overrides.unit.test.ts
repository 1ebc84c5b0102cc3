import { UNASSIGNED } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { engineOptions } from './engine.ts';
import { renderProblem } from './errors.ts';
import { type LoadInput, loadConfig } from './load.ts';
import { commonToAggregates, sections } from './options.ts';
import { resolveConfig } from './resolve.ts';
import { configSample, configurationDoc } from './sample.ts';
import { aggregateConfig } from './scope.ts';
import { shownOptions, shownOverrides } from './shown.ts';

const SCOPE = '[engine]\naggregates = general, gpu\n';

const resolve = (text: string, env: Record<string, string> = {}) =>
  resolveConfig({ file: 'k.conf', text, env, role: 'planner', readFile: () => '' });

const told = (text: string, env: Record<string, string> = {}): string[] =>
  resolve(text, env).problems.map((p) => `${p.line} ${p.option}: ${p.problem} | ${p.remedy}`);

describe('[aggregate:NAME]', () => {
  it('sets options of one aggregate and leaves the others as [engine] has them', () => {
    const text = `${SCOPE}cooldown = 60\ndry_run = false\n[aggregate:gpu]\ncooldown = 3600\napproval = manual\n`;
    const { config, problems } = resolve(text);
    expect(problems).toEqual([]);
    expect(aggregateConfig(config, 'gpu').engine).toEqual({ ...config.engine, cooldown: 3600, approval: 'manual' });
    expect(aggregateConfig(config, 'general')).toBe(config);
    expect(engineOptions(config, 'general')).toMatchObject({ cooldownSeconds: 60, approval: 'auto', dryRun: false });
    expect(engineOptions(config, 'gpu')).toMatchObject({ cooldownSeconds: 3600, approval: 'manual', dryRun: false });
  });

  it('wins over the environment, which sets [engine]', () => {
    const { config } = resolve(`${SCOPE}[aggregate:gpu]\ndry_run = true\n`, { OS_ENGINE__DRY_RUN: 'false' });
    expect(engineOptions(config, 'general').dryRun).toBe(false);
    expect(engineOptions(config, 'gpu').dryRun).toBe(true);
  });

  it('takes names that hold spaces, colons and brackets, and the pool', () => {
    const text = `[engine]\naggregates = "my agg:x[1]"\ninclude_unassigned_hosts = true\n[aggregate:my agg:x[1]]\ncooldown = 1\n[aggregate:${UNASSIGNED}]\ncooldown = 2\n`;
    const { config, problems } = resolve(text);
    expect(problems).toEqual([]);
    expect(engineOptions(config, 'my agg:x[1]').cooldownSeconds).toBe(1);
    expect(engineOptions(config, UNASSIGNED).cooldownSeconds).toBe(2);
  });

  it('that is empty changes nothing', () => {
    const { config, problems } = resolve(`${SCOPE}[aggregate:gpu]\n`);
    expect(problems).toEqual([]);
    expect(engineOptions(config, 'gpu')).toEqual(engineOptions(config, 'general'));
    expect(shownOverrides(config)).toEqual({});
  });

  it.each([
    [
      '[aggregate:gpus]\ncooldown = 1',
      '3 [aggregate:gpus]: names an aggregate that is not in [engine] aggregates | Did you mean [aggregate:gpu]?',
    ],
    ['[aggregate:]', '3 [aggregate:]: names an aggregate that is not in [engine] aggregates'],
    [
      `[aggregate:${UNASSIGNED}]`,
      '3 [aggregate:_unassigned_]: is about the unassigned hosts, which Kronos does not balance | Set [engine] include_unassigned_hosts = true',
    ],
    [
      '[aggregate:gpu]\ncooldwon = 1',
      '4 [aggregate:gpu] cooldwon: is not an option that an aggregate can set | Did you mean cooldown?',
    ],
    [
      '[aggregate:gpu]\nmax_retries = 1',
      '4 [aggregate:gpu] max_retries: is not an option that an aggregate can set | Set it below [executor], for all aggregates.',
    ],
    [
      '[aggregate:gpu]\nevaluation_interval = 1',
      '4 [aggregate:gpu] evaluation_interval: cannot differ between aggregates: the scorer reads the cloud once for all aggregates | Set it below [engine].',
    ],
    ['[aggregate:gpu]\ncooldown = soon', '4 [aggregate:gpu] cooldown: "soon" is not a number of seconds'],
    [
      '[aggregate:gpu]\ninstance_quarantine_seconds = -0.5',
      '4 [aggregate:gpu] instance_quarantine_seconds: is negative and not -1',
    ],
    [
      '[aggregate:gpu]\ncooldown = 1\n[aggregate:gpu]\ncooldown = 2',
      '6 [aggregate:gpu] cooldown: is given twice, in lines 4 and 6',
    ],
  ])('refuses %j', (text, expected) => {
    const problems = told(`${SCOPE}${text}\n`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
  });

  it('is not read from the environment, and says so', () => {
    expect(told(SCOPE, { 'OS_AGGREGATE:GPU__DRY_RUN': 'true' })).toEqual([
      'null OS_AGGREGATE:GPU__DRY_RUN: names an aggregate, whose options are read from kronos.conf only | Write it into kronos.conf, below [aggregate:NAME].',
    ]);
  });

  it('does not repeat what is wrong in [engine]', () => {
    expect(told(`${SCOPE}instance_quarantine_seconds = -0.5\n[aggregate:gpu]\ncooldown = 5\n`)).toHaveLength(1);
  });

  it('is shown with the options in force', () => {
    const { config } = resolve(`${SCOPE}[aggregate:gpu]\ncooldown = 5\npolicies_file = /g.yaml\n`);
    expect(shownOverrides(config)).toEqual({ 'aggregate:gpu.cooldown': 5, 'aggregate:gpu.policies_file': '/g.yaml' });
    expect(shownOptions(config, 'planner')).toMatchObject({ 'engine.cooldown': 600, 'aggregate:gpu.cooldown': 5 });
    expect(shownOptions(config, 'planner')).not.toHaveProperty('aggregate:gpu.policies_file');
  });

  it('is in the sample and in the documentation; what aggregates have in common exists', () => {
    for (const text of [configSample(), configurationDoc()]) {
      expect(text).toContain('[aggregate:gpu]');
      for (const name of commonToAggregates.keys()) expect(text).toContain(name);
    }
    for (const name of commonToAggregates.keys()) expect(sections.get('engine')?.has(name)).toBe(true);
  });
});

describe('the policies of an aggregate', () => {
  const policy = (mode: string) =>
    `policies:\n- {name: ram, mode: ${mode}, weight: 1, threshold: 0.2, source: allocation, resource_class: MEMORY_MB${mode === 'pack' ? ', capacity_threshold: 0.8' : ''}}\n`;
  const conf = `${SCOPE}policies_file = /p.yaml\n[nova]\ncloud = prod\n`;
  const load = (files: Record<string, string>, role: LoadInput['role'] = 'scorer') => {
    const read: string[] = [];
    const readFile = (path: string): string => {
      read.push(path);
      const content = files[path];
      if (content === undefined) throw Object.assign(new Error(`no ${path}`), { code: 'ENOENT' });
      return content;
    };
    return { read, ...loadConfig({ file: '/k.conf', env: {}, role, readFile }) };
  };

  it('come from its own file; a file that several share is read once', () => {
    const own = '[aggregate:gpu]\npolicies_file = /g.yaml\n';
    const { policiesOf } = load({ '/k.conf': conf + own, '/p.yaml': policy('spread'), '/g.yaml': policy('pack') });
    expect(policiesOf('general').map(({ mode }) => mode)).toEqual(['spread']);
    expect(policiesOf('gpu').map(({ mode }) => mode)).toEqual(['pack']);
    const shared = load({ '/k.conf': conf, '/p.yaml': policy('spread') });
    expect(shared.policiesOf('gpu')).toBe(shared.policiesOf('general'));
    expect(shared.read.filter((path) => path === '/p.yaml')).toHaveLength(1);
  });

  it('are none with balance = false, and the file that nobody uses need not be there', () => {
    const rules = load({ '/k.conf': `${conf}[aggregate:gpu]\nbalance = false\n`, '/p.yaml': policy('spread') });
    expect(rules.policiesOf('gpu')).toEqual([]);
    expect(rules.policiesOf('general')).toHaveLength(1);
    const own = '[aggregate:gpu]\npolicies_file = /g.yaml\n[aggregate:general]\npolicies_file = /g.yaml\n';
    expect(load({ '/k.conf': conf + own, '/g.yaml': policy('spread') }).policiesOf('general')).toHaveLength(1);
  });

  it('that cannot be read name the option of the aggregate', () => {
    const own = '[aggregate:gpu]\npolicies_file = /g.yaml\n';
    const failing = () => load({ '/k.conf': conf + own, '/p.yaml': policy('spread') });
    expect(failing).toThrow(
      'named by [aggregate:gpu] policies_file (/k.conf:7), cannot be read: there is no such file',
    );
  });

  it('that ask Prometheus need it, also where only one aggregate uses them', () => {
    const asks = `policies:\n- {name: ram, mode: spread, weight: 1, threshold: 0.2, imbalance_query: up, vm_profile_query: up, vm_profile_label: uuid}\n`;
    const own = '[aggregate:gpu]\npolicies_file = /g.yaml\n';
    const files = { '/k.conf': conf + own, '/p.yaml': policy('spread'), '/g.yaml': asks };
    expect(() => load(files)).toThrow('[prometheus] url: is not set');
    expect(load({ ...files, '/k.conf': `${conf + own}balance = false\n` }).policiesOf('gpu')).toEqual([]);
  });
});

it('a problem names its place', () => {
  const [problem] = resolve(`${SCOPE}[aggregate:gpus]\n`).problems;
  expect(problem === undefined ? '' : renderProblem(problem)).toContain('k.conf:3: [aggregate:gpus]:');
});
