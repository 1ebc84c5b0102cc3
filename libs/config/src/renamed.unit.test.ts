import { describe, expect, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { renderProblem } from './errors.ts';
import { type LoadInput, loadConfig } from './load.ts';
import { sinkOptions } from './options/sink.ts';
import { sections } from './options.ts';
import { type Renamed, refusedFrom, renamedOptions } from './renamed.ts';

const table: readonly Renamed[] = [
  { from: 'engine.pause_after_move', to: 'engine.cooldown', since: '1.4.0' },
  { from: 'engine.kinds', to: 'nova.hypervisor_types', since: '1.4.0' },
  { from: 'notify.kind', to: 'notify.format', since: '1.4.0' },
];

const SCOPE = '[engine]\naggregates = gpu\n';
const load = (text: string, env: LoadInput['env'] = {}) =>
  loadConfig({ file: 'k.conf', env, role: 'planner', readFile: () => text, renamed: table });
const problemsOf = (text: string, env: LoadInput['env'] = {}): string => {
  try {
    load(text, env);
  } catch (error) {
    return String(error);
  }
  return '';
};

describe('the former name of an option', () => {
  it('is accepted, with a warning that names both, the place and the version that refuses it', () => {
    const { config, warnings, sources } = load(`${SCOPE}pause_after_move = 7\n`);
    expect(config.engine.cooldown).toBe(7);
    expect(sources.get('engine.cooldown')?.line).toBe(3);
    expect(warnings.map(renderProblem)).toEqual([
      'k.conf:3: [engine] pause_after_move: is the former name of [engine] cooldown, since Kronos 1.4.0\n    Write [engine] cooldown: Kronos 1.5.0 refuses the former name.',
    ]);
  });

  it('is accepted from the environment, which wins over the file', () => {
    const { config, warnings } = load(`${SCOPE}cooldown = 3\n`, { OS_ENGINE__PAUSE_AFTER_MOVE: '7' });
    expect(config.engine.cooldown).toBe(7);
    expect(warnings.map(({ file, option, remedy }) => [file, option, remedy])).toEqual([
      [
        'environment',
        'OS_ENGINE__PAUSE_AFTER_MOVE',
        'Write OS_ENGINE__COOLDOWN: Kronos 1.5.0 refuses the former name.',
      ],
    ]);
  });

  it('is accepted in the section of an aggregate and of a sink, and when the option is in another section now', () => {
    const { config, warnings } = load(
      `${SCOPE}kinds = QEMU\n[aggregate:gpu]\npause_after_move = 9\n[notify:chat]\nkind = slack\nurl = http://chat\n`,
    );
    expect(config.nova.hypervisorTypes).toEqual(['QEMU']);
    expect(config.overrides.get('gpu')).toEqual({ cooldown: 9 });
    expect(config.sinks.get('chat')?.format).toBe('slack');
    expect(warnings.map(({ option }) => option)).toEqual([
      '[engine] kinds',
      '[aggregate:gpu] pause_after_move',
      '[notify:chat] kind',
    ]);
  });

  it('beside the name of today is a problem, in the file and in the environment', () => {
    expect(problemsOf(`${SCOPE}pause_after_move = 7\ncooldown = 8\n`)).toContain(
      'k.conf:3: [engine] pause_after_move: is the former name of [engine] cooldown, which is set too\n    Keep [engine] cooldown.',
    );
    expect(problemsOf(SCOPE, { OS_ENGINE__PAUSE_AFTER_MOVE: '7', OS_ENGINE__COOLDOWN: '8' })).toContain(
      'Keep OS_ENGINE__COOLDOWN.',
    );
  });

  it('of an option that an aggregate cannot set any more stays unknown there', () => {
    expect(problemsOf(`${SCOPE}[aggregate:gpu]\nkinds = QEMU\n`)).toContain(
      '[aggregate:gpu] kinds: is not an option that an aggregate can set',
    );
  });

  it('stands among the problems when there are others: a wrong value is named as today', () => {
    const text = problemsOf(`${SCOPE}pause_after_move = soon\n`);
    expect(text).toContain('k.conf:3: [engine] pause_after_move: is the former name of [engine] cooldown');
    expect(text).toContain('k.conf:3: [engine] cooldown: "soon" is not a number of seconds');
  });

  it('is unknown without a row in the table, and names of today give no warning', () => {
    expect(() =>
      loadConfig({ file: 'k.conf', env: {}, role: 'planner', readFile: () => `${SCOPE}pause_after_move = 7\n` }),
    ).toThrow(/pause_after_move: is not an option of Kronos/);
    expect(load(`${SCOPE}cooldown = 7\n`, { OS_LOG__LEVEL: 'warn' }).warnings).toEqual([]);
  });
});

describe('the table of former names', () => {
  const isOption = (path: string): boolean => {
    const [section = '', option = ''] = path.split('.');
    return section === 'notify' ? option in sinkOptions : (sections.get(section)?.has(option) ?? false);
  };
  /** The errors of a row at a version of Kronos. */
  const wrong = ({ from, to, since }: Renamed, version: string): string[] => [
    ...(isOption(from) ? [`${from} is an option today`] : []),
    ...(isOption(to) ? [] : [`there is no option ${to}`]),
    ...(sections.has(from.split('.')[0] ?? '') || from.startsWith('notify.') ? [] : [`${from}: no such section`]),
    ...(isOlder(version, refusedFrom({ since })) ? [] : [`${from}: ${version} refuses it: take the row away`]),
  ];
  const isOlder = (a: string, b: string): boolean => a.localeCompare(b, 'en', { numeric: true }) < 0;

  it('has rows of this version only, each to an option that there is', () => {
    expect(renamedOptions.flatMap((row) => wrong(row, manifest.version))).toEqual([]);
  });

  it('a row that is wrong or whose time is over is noticed', () => {
    expect(table.flatMap((row) => wrong(row, '1.4.9'))).toEqual([]);
    expect(table.flatMap((row) => wrong(row, '1.5.0'))).toHaveLength(3);
    expect(wrong({ from: 'engine.cooldown', to: 'engine.approval', since: '1.10.2' }, '1.9.0')).toEqual([
      'engine.cooldown is an option today',
    ]);
    expect(wrong({ from: 'motor.pause', to: 'engine.cooldown', since: '1.4.0' }, '2.0.0')).toEqual([
      'motor.pause: no such section',
      'motor.pause: 2.0.0 refuses it: take the row away',
    ]);
  });
});
