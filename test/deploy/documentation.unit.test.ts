import { globSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createProgram } from '@kronos/cli';
import { describe, expect, it } from 'vitest';
import { processShell } from '../../libs/cli/src/shell.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const pages = globSync(['docs/*.md', 'deploy/**/*.md', 'README.md', 'CONTRIBUTING.md'], { cwd: root }).toSorted();
const read = (page: string) => readFileSync(`${root}${page}`, 'utf8');

const program = createProgram(processShell());

/** The commands of `kronos` that a page names: in `code`, and as lines of a block. */
function commandsOf(text: string): string[] {
  const inline = [...text.matchAll(/`kronos ([^`]+)`/g)].map(([, rest = '']) => rest);
  const blocks = [...text.matchAll(/```[a-z]*\n(.*?)```/gs)].flatMap(([, block = '']) =>
    block.split('\n').flatMap((line) => {
      const [, rest] = /^(?:docker compose .*run --rm |npm run )?kronos (?:-- )?([^#]+)/.exec(line) ?? [];
      return rest === undefined ? [] : [rest];
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

  it.each(globSync(['libs/*/README.md', 'services/*/README.md', 'test/*/README.md'], { cwd: root }).toSorted())(
    'the files that %s names are there',
    (page) => {
      expect(missingFiles(page, read(page))).toEqual([]);
    },
  );

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
      const heads = [...read(target).matchAll(/^#+ (.*)$/gm)].map(([, head = '']) =>
        head
          .toLowerCase()
          .replace(/[^\w\- ]/g, '')
          .replaceAll(' ', '-'),
      );
      return heads.includes(anchor.slice(1)) ? [] : [link];
    });
    expect(dead).toEqual([]);
  });
});
