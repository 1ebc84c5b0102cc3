/** Manual pages and completions of the kronos command, from its own help. */
import { createProgram, runProgram } from '@kronos/cli';
import { processShell } from '../libs/cli/src/shell.ts';

type Program = ReturnType<typeof createProgram>;

function helpOf(command: Program): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part) });
  command.configureHelp({ helpWidth: 80 });
  command.outputHelp();
  return text.trim();
}

/** The commands below one that its help shows. */
function shown(command: Program): readonly Program[] {
  const visible = command.createHelp().visibleCommands(command);
  return command.commands.filter((each) => visible.includes(each));
}

const escaped = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&');

function page(
  name: string,
  version: string,
  description: string,
  parts: readonly (readonly [string, string])[],
): string {
  const sections = parts.map(([title, text]) => `.SH ${title}\n.nf\n${escaped(text)}\n.fi\n`);
  return `.TH ${escaped(name.toUpperCase())} 1 2000-01-01 "Kronos ${version}" "Kronos"
.SH NAME
${escaped(name)} \\- ${escaped(description)}
${sections.join('')}.SH FILES
/etc/kronos/kronos.conf, /etc/kronos/policies.yaml
.SH SEE ALSO
The documents in /usr/share/doc/kronos.
`;
}

/** One page for the command and one for each of its subcommands: name -> roff. */
export async function manPages(version: string): Promise<{
  readonly pages: ReadonlyMap<string, string>;
  readonly completions: Readonly<Record<'bash' | 'zsh' | 'fish', string>>;
}> {
  const program = createProgram(processShell());
  const pages = new Map([
    ['kronos', page('kronos', version, program.description(), [['DESCRIPTION', helpOf(program)]])],
  ]);
  for (const command of shown(program)) {
    const name = `kronos-${command.name()}`;
    const own: [string, string] = ['DESCRIPTION', helpOf(command)];
    const below = shown(command).map((sub): [string, string] => [
      `${command.name()} ${sub.name()}`.toUpperCase(),
      helpOf(sub),
    ]);
    const parts = [own, ...below];
    pages.set(name, page(name, version, command.description(), parts));
  }
  return {
    pages,
    completions: { bash: await completion('bash'), zsh: await completion('zsh'), fish: await completion('fish') },
  };
}

async function completion(of: string): Promise<string> {
  let text = '';
  const shell = processShell();
  const out = (part: string) => (text += part);
  await runProgram(['completion', of], { ...shell, terminal: { ...shell.terminal, out } });
  return text;
}
