import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createProgram } from '@kronos/cli';
import { ConfigError, defaultConfig, loadConfig, parsePolicies } from '@kronos/config';
import { parseClusterFile } from '@kronos/placement';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { processShell } from '../../libs/cli/src/shell.ts';
import { parseHostCells } from '../../libs/config/src/hostCells.ts';
import { anchorOf } from '../../scripts/site/pages.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const pages = globSync(['docs/**/*.md', 'deploy/**/*.md', 'README.md', 'CONTRIBUTING.md'], { cwd: root }).toSorted();
/** The pages of packages. */
const rooms = globSync(['libs/*/README.md', 'services/*/README.md', 'test/*/README.md'], { cwd: root }).toSorted();
const read = (page: string) => readFileSync(`${root}${page}`, 'utf8');

const program = createProgram(processShell());

type Block = { readonly language: string; readonly text: string };

/** The fenced blocks of a page, without the indentation of their list. */
const blocksOf = (text: string): Block[] =>
  [...text.matchAll(/^( *)```(\w*)\n(.*?)^ *```$/gms)].map(([, indent = '', language = '', block = '']) => ({
    language,
    text: block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));

/** The commands of `kronos` that a page names: in `code`, and in the lines of a block; in answers, those after a prompt. */
function commandsOf(text: string): string[] {
  const inline = [...text.matchAll(/`kronos ([^`]+)`/g)].map(([, rest = '']) => rest);
  const blocks = blocksOf(text).flatMap(({ language, text: block }) =>
    block.split('\n').flatMap((line) => {
      const [, prompt, typed = ''] = /^(\$ )?(.*)$/.exec(line) ?? [];
      if (prompt === undefined && !['', 'sh'].includes(language)) return [];
      return typed.split(/ #.*| ?&&|;| [|>&] ?/).flatMap((command) => {
        const [, rest] = /^(?:docker compose .*run --rm )?kronos (.+)/.exec(command.trim()) ?? [];
        return rest === undefined ? [] : [rest];
      });
    }),
  );
  return [...inline, ...blocks].map((command) => command.trim());
}

/** The error in a command; null when the command and its options exist. */
function wrong(command: string): string | null {
  const words = command
    .replaceAll('\\|', '|')
    .split(/[\s[\]=(),]+/)
    .filter((word) => word !== '');
  let at = program;
  while (at.commands.length > 0) {
    const word = words.shift() ?? '';
    // In sentences about all commands, the name of the program stands alone.
    if (at === program && (word === 'COMMAND' || word === '--help')) return null;
    const names = word.split('|');
    const found = names.map((name) => at.commands.find((sub) => sub.name() === name || sub.aliases().includes(name)));
    const unknown = names.find((_, i) => found[i] === undefined);
    const [first] = found;
    // `kronos plan` is a command and has subcommands.
    if (unknown !== undefined && (word === '' || word.startsWith('-')) && at !== program) break;
    if (unknown !== undefined || first === undefined) return `there is no command ${JSON.stringify(word)}`;
    at = first;
  }
  const options = words.concat([]).filter((word) => word.startsWith('-') && word !== '--');
  const known = at.options.flatMap(({ short, long }) => [short, long]).concat(['--help']);
  const missing = options.find((option) => !known.includes(option));
  return missing === undefined ? null : `${at.name()} has no option ${missing}`;
}

describe('documentation', () => {
  it.each(
    pages.map((page) => ({ page, commands: commandsOf(read(page)) })).filter(({ commands }) => commands.length > 0),
  )('$page names commands and options that there are', ({ commands }) => {
    const errors = commands.flatMap((command) => {
      const error = wrong(command);
      return error === null ? [] : [`kronos ${command}: ${error}`];
    });
    expect(errors).toEqual([]);
  });

  it('a command that is not there is noticed', () => {
    expect(wrong('statsu')).toBe('there is no command "statsu"');
    expect(wrong('explain everything')).toBe('there is no command "everything"');
    expect(wrong('pause --every')).toBe('pause has no option --every');
    expect(commandsOf(read('docs/runbook.md')).length).toBeGreaterThan(20);
    expect(
      commandsOf(
        '```\nkronos up > up.txt &\n   kronos plan show && kronos tap # follow\n```\n- x\n  ```txt\n  $ kronos status\n  kronos is well\n  ```\n',
      ),
    ).toEqual(['up', 'plan show', 'tap', 'status']);
  });

  it('no page spells the command otherwise, and every script of npm that a page names is there', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const wrongIn = (text: string): string[] => [
      ...[...text.matchAll(/\b(?:npx|npm run) kronos\b|\bnode \S*cli\/[\w/.]+|\.bin\/kronos\b/g)].map(
        ([other]) => other,
      ),
      ...[...text.matchAll(/\bnpm run ([\w:-]+)/g)].flatMap(([, name = '']) =>
        name in scripts ? [] : [`npm run ${name}`],
      ),
    ];
    expect(pages.flatMap((page) => wrongIn(read(page)).map((other) => `${page}: ${other}`))).toEqual([]);
    expect(wrongIn('npx kronos status; npm run kronos; node libs/cli/src/main.ts; npm run lint; npm run lnit')).toEqual(
      ['npx kronos', 'npm run kronos', 'node libs/cli/src/main.ts', 'npm run lnit'],
    );
  });

  /** The contents of the files of secrets. */
  const secretIn = (path: string): string =>
    path.endsWith('-secret') ? 'A'.repeat(32) : 'https://receiver.example.org';
  /** The errors in the lines of a kronos.conf or in options of the environment, without missing options. */
  const problemsOf = (text: string, env: Record<string, string> = {}): string[] => {
    try {
      loadConfig({
        file: 'k.conf',
        env,
        role: 'check',
        readFile: (path) => (path === 'k.conf' ? text : secretIn(path)),
      });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems
        .filter(({ file, line }) => (file === 'k.conf' && line !== null) || file === 'environment')
        .map(({ option, problem }) => `${option ?? ''}: ${problem}`);
    }
    return [];
  };

  const preset = parse(read('deploy/policies/node-exporter+libvirt-exporter.yaml')) as {
    policies: { name: string }[];
  };
  /** The errors in a block of a page, by the reader of such a file. `section`: the last one of the block before. */
  function wrongBlock({ language, text }: Block, section: string): string[] {
    if (language === 'ini') return problemsOf(text.startsWith('[') ? text : `${section}\n${text}`);
    if (language === 'json') {
      parseClusterFile(JSON.parse(text));
      return [];
    }
    if (language === 'yaml') {
      const list = parse(text) as { name?: string; hosts?: string }[];
      if (list.some(({ hosts }) => hosts !== undefined))
        return parseHostCells({ file: 'cells.yaml', text }).problems.map(({ problem }) => problem);
      const policies = preset.policies.map((policy) => ({
        ...policy,
        ...list.find(({ name }) => name === policy.name),
      }));
      const others = list.flatMap(({ name }) =>
        policies.some((policy) => policy.name === name) ? [] : [String(name)],
      );
      const { problems } = parsePolicies({ file: 'policies.yaml', text: stringify({ policies }) });
      return [...others, ...problems.map(({ option, problem }) => `${option ?? ''}: ${problem}`)];
    }
    const env = [...text.matchAll(/^(?:\$ )?(?:export )?(OS_\w+__\w+)=(\S*)$/gm)].map(([, name = '', value = '']) => [
      name,
      value,
    ]);
    return problemsOf('', Object.fromEntries(env));
  }

  it.each(pages.map((page) => ({ page, blocks: blocksOf(read(page)) })).filter(({ blocks }) => blocks.length > 0))(
    'the configurations of $page are read without a mistake',
    ({ blocks }) => {
      const errors = blocks.flatMap((block, i) => {
        const before = blocks.slice(0, i).flatMap(({ language, text }) => (language === 'ini' ? [text] : []));
        return wrongBlock(block, [...before.join('\n').matchAll(/^\[.*\]$/gm)].at(-1)?.[0] ?? '');
      });
      expect(errors).toEqual([]);
    },
  );

  /** Options in a text that Kronos does not have: `[section] option`, and names of the environment. */
  function unknownOptions(text: string): string[] {
    const camel = (name: string): string =>
      name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    const sections = new Map<string, object>(Object.entries(defaultConfig));
    const named = [
      ...text.matchAll(/`[^`\n]*?\[([a-z]+)\]\s+([a-z][a-z_]*)(?= = |`)/g),
      ...text.matchAll(/\bOS_([A-Z]+)__([A-Z][A-Z_]*)/g),
    ].map(([, section = '', option = '']) => [section.toLowerCase(), option.toLowerCase()] as const);
    return named.flatMap(([section, option]) => {
      const known = sections.get(section);
      return known === undefined || camel(option) in known ? [] : [`${section}.${option}`];
    });
  }

  it.each(pages)('%s names options that there are', (page) => {
    expect(unknownOptions(read(page))).toEqual([]);
  });

  /** The syntax errors in the commands of a page, and the files of the project that they name and that do not exist. */
  function wrongCommands(blocks: readonly Block[]): string[] {
    const text = blocks.flatMap((block) => (['', 'sh'].includes(block.language) ? [block.text] : [])).join('');
    if (text === '') return [];
    const { stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' });
    const files = [...text.matchAll(/(?<=^|[\s=])(?:\.\/)?((?:deploy|docs|libs|scripts|services|test)\/[\w./@-]+)/gm)];
    const missing = files.flatMap(([, file = '']) => (existsSync(join(root, file)) ? [] : [file]));
    return [...(stderr === '' ? [] : [stderr]), ...missing];
  }

  it.each([...pages, ...rooms].map((page) => ({ page, blocks: blocksOf(read(page)) })))(
    'a shell takes the commands of $page',
    ({ blocks }) => {
      expect(wrongCommands(blocks)).toEqual([]);
    },
  );

  it('a command that no shell takes is noticed', () => {
    const [parenthesis, file] = wrongCommands([
      { language: '', text: 'npm test (all)\ndeploy/images/biuld --local\n' },
    ]);
    expect(parenthesis).toMatch(/syntax error/);
    expect(file).toBe('deploy/images/biuld');
  });

  it('a configuration or an option that is wrong is noticed', () => {
    expect(unknownOptions('Set `[engine] cooldwon = 1`, `OS_LOG__LEVLE` or `[compute] cpu_dedicated_set`.')).toEqual([
      'engine.cooldwon',
      'log.levle',
    ]);
    const ini = { language: 'ini', text: 'cooldwon = 1\ncooldown = 10m\n' };
    expect(wrongBlock(ini, '[engine]')).toEqual([
      '[engine] cooldwon: is not an option of Kronos',
      '[engine] cooldown: "10m" has a unit, and durations are plain seconds',
    ]);
    expect(wrongBlock({ language: 'yaml', text: '- name: cpu\n  treshold: 0.2\n' }, '')).toHaveLength(1);
    expect(wrongBlock({ language: 'yaml', text: '- hosts: a\n  cells: []\n' }, '')).toHaveLength(1);
    expect(wrongBlock({ language: 'sh', text: 'OS_NOVA__USERNAM=a\n' }, '')).toEqual([
      'OS_NOVA__USERNAM: is not an option of [nova]',
    ]);
    expect(() => wrongBlock({ language: 'json', text: '{ "policies": ["cpu"] }' }, '')).toThrow();
  });

  it('the runbook names panels that dashboards have', () => {
    const titles = readdirSync(`${root}deploy/grafana/dashboards`).flatMap((name) =>
      (JSON.parse(read(`deploy/grafana/dashboards/${name}`)) as { panels: { title: string }[] }).panels.map(
        ({ title }) => title,
      ),
    );
    const named = [
      ...read('docs/runbook.md')
        .replace(/\s+/g, ' ')
        .matchAll(/panels? ((?:"[^"]+"(?:, | and )?)+)/g),
    ].flatMap(([, list = '']) => [...list.matchAll(/"([^"]+)"/g)].map(([, title = '']) => title));
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((title) => !titles.includes(title))).toEqual([]);
  });

  /** Files that a page names and that are nowhere: by their path from the room or the root, or by the end of a path in the room. */
  const missingFiles = (page: string, text: string): string[] => {
    const room = page.slice(0, page.lastIndexOf('/'));
    const files = globSync(`${room}/**/*`, { cwd: root });
    return [...text.matchAll(/`([\w@.-][\w@./-]*\.(?:ts|mjs|js|json|py|sh))`/g)].flatMap(([, name = '']) =>
      files.some((file) => file.endsWith(`/${name}`)) || globSync(name, { cwd: root }).length > 0 ? [] : [name],
    );
  };

  it.each(rooms)('the files that %s names are there', (page) => {
    expect(missingFiles(page, read(page))).toEqual([]);
  });

  /** Rows of the walk of the data whose shape is declared nowhere in its file. */
  const missingShapes = (text: string): string[] =>
    [...text.matchAll(/^\| `(\w+)` \| `([\w/.]+\.ts)` \|/gm)].flatMap(([, shape = '', file = '']) =>
      new RegExp(`\\b(type|interface|class|function) ${shape}\\b`).test(read(file)) ? [] : [shape],
    );

  it('the files of what a change costs, and the shapes of the walk of the data, are there', () => {
    const page = read('CONTRIBUTING.md');
    const costs = page.split('## What a change costs')[1] ?? '';
    const files = [...costs.matchAll(/`((?:libs|services|test|docs)\/[\w@./-]+\.\w+)`/g)].map(([, path = '']) => path);
    expect(files.length).toBeGreaterThan(60);
    expect(files.filter((path) => globSync(path, { cwd: root }).length === 0)).toEqual([]);
    const [, out = '', back = ''] = costs.split(/^\| shape.*\n/m);
    const shapes = (table: string) => table.match(/^\| `\w+` \| `/gm)?.length;
    expect([shapes(out), shapes(back)]).toEqual([11, 5]);
    expect(missingShapes(costs)).toEqual([]);
    expect(missingShapes('| `Nowhere` | `libs/projections/src/state.ts` |')).toEqual(['Nowhere']);
  });

  it('a file that is not there is noticed', () => {
    expect(missingFiles('libs/cli/README.md', 'See `program.ts`, `grammar/nowhere.ts` and `package.json`.')).toEqual([
      'grammar/nowhere.ts',
    ]);
  });

  it.each(pages)('the links of %s lead somewhere', (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)/g)];
    const dead = links.flatMap(([link, path = '', anchor]) => {
      const target = path === '' ? page : new URL(path, `file:///${page}`).pathname.slice(1);
      if (globSync(target, { cwd: root }).length === 0) return [link];
      if (anchor === undefined || !target.endsWith('.md')) return [];
      const taken = new Map<string, number>();
      const heads = [...read(target).matchAll(/^#+ (.*)$/gm)].map(([, head = '']) => anchorOf(head, taken));
      return heads.includes(anchor.slice(1)) ? [] : [link];
    });
    expect(dead).toEqual([]);
  });
});
