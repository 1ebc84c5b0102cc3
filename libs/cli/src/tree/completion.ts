import { Argument, type Command, Help } from 'commander';
import { examples } from '../grammar/help.ts';
import { type ConfigOption, type NameKind, nameKinds, withConfig } from '../grammar/shared.ts';
import { quoted } from '../quoted.ts';
import type { Shell } from '../shell.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

/** The kind of names that `kronos __complete` prints, by the option or the argument that takes them. */
const NAMED: Readonly<Record<string, NameKind>> = {
  '--aggregate': 'aggregates',
  '--host': 'hosts',
  '--vm': 'vms',
  plan: 'plans',
  host: 'hosts',
  vm: 'vms',
};

export function completionCommand(program: Command, shell: Shell): void {
  withConfig(program.command('__complete', { hidden: true }))
    .description('Print names for the completion of a shell')
    .addArgument(new Argument('<kind>', 'names of what').choices(nameKinds))
    .addHelpText('after', examples(['kronos __complete hosts', 'one a line']))
    .action(async (kind: NameKind, options: ConfigOption) =>
      (await import('../commands/complete.ts')).complete(shell, kind, options),
    );

  program
    .command('completion')
    .description('Print the completion script for a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(shells))
    .addHelpText(
      'after',
      examples(
        ['source <(kronos completion bash)', 'now, or in ~/.bashrc'],
        ['kronos completion bash > /etc/bash_completion.d/kronos', 'for everyone'],
        ['source <(kronos completion zsh)', 'in ~/.zshrc, after compinit'],
        ['kronos completion fish > ~/.config/fish/completions/kronos.fish', 'for fish'],
      ),
    )
    .action((name: (typeof shells)[number]) => shell.terminal.out(completions[name](program)));
}

/** One place of the command tree: what can come next. */
type Place = {
  /** `` for kronos itself, ` plan show` for a subcommand. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly text: string }[];
  readonly options: readonly { readonly name: string; readonly short: string | null; readonly text: string }[];
  /** Options that take a value: its choices, or null where any will do. */
  readonly values: readonly {
    readonly names: readonly string[];
    readonly choices: readonly string[] | null;
    /** It takes a name of these. */
    readonly named: NameKind | null;
  }[];
  /** Choices of the first argument. */
  readonly choices: readonly string[];
  /** The arguments are names of these. */
  readonly named: NameKind | null;
};

function places(program: Command): Place[] {
  const found: Place[] = [];
  // Unlike that of the program it lists every command.
  const help = new Help();
  const visit = (command: Command, path: string): void => {
    const commands = help.visibleCommands(command).filter((sub) => sub.name() !== 'help');
    const options = help.visibleOptions(command);
    found.push({
      path,
      commands: commands.map((sub) => ({ name: sub.name(), text: sub.description() })),
      options: options.flatMap((option) =>
        [option.long ?? option.short ?? ''].map((name) => ({
          name,
          short: option.short?.slice(1) ?? null,
          text: option.description,
        })),
      ),
      values: options
        .filter((option) => option.required || option.optional)
        .map((option) => ({
          names: [option.short, option.long].filter((name) => name !== undefined),
          choices: option.argChoices ?? null,
          named: NAMED[option.long ?? ''] ?? null,
        })),
      choices: command.registeredArguments[0]?.argChoices ?? [],
      named: NAMED[command.registeredArguments[0]?.name() ?? ''] ?? null,
    });
    for (const sub of commands) visit(sub, `${path} ${sub.name()}`);
  };
  visit(program, '');
  return found;
}

/** The words between the program's name and the one that is typed. */
const BASH_WORDS = `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`;
const ZSH_WORDS = `"\${(@)words[2,CURRENT-1]}"`;

/** The way down the tree that the words so far have taken. */
const descend = (all: readonly Place[], words: string): string =>
  [
    `  for word in ${words}; do`,
    '    case "$at $word" in',
    `      ${all
      .filter(({ path }) => path !== '')
      .map(({ path }) => quoted(path))
      .join('|')}) at="$at $word" ;;`,
    '    esac',
    '  done',
  ].join('\n');

/** Names of the running system; nothing where it cannot be asked. */
const bashNames = (kind: NameKind): string => `"$(kronos __complete ${kind} 2>/dev/null)"`;
const zshNames = (kind: NameKind): string => `compadd -- \${(f)"$(kronos __complete ${kind} 2>/dev/null)"}`;
const fishNames = (kind: NameKind): string => `(kronos __complete ${kind} 2>/dev/null)`;

function bashCompletion(program: Command): string {
  const all = places(program);
  const value = ({ path, values }: Place): string[] =>
    values.map(({ names, choices, named }) => {
      const words = named === null ? choices && quoted(choices.join(' ')) : bashNames(named);
      return `    ${names.map((name) => quoted(`${path}:${name}`)).join('|')}) ${words === null ? '' : `COMPREPLY=($(compgen -W ${words} -- "$cur")); `}return ;;`;
    });
  return `# Completion of kronos for bash: source <(kronos completion bash)
_kronos() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at='' word
  COMPREPLY=()
${descend(all, BASH_WORDS)}
  # The value of an option: one of its choices, else a file.
  case "$at:$prev" in
${all.flatMap(value).join('\n')}
  esac
  case "$at" in
${all
  .map(
    ({ path, commands, options, choices, named }) =>
      `    ${quoted(path)}) if [[ $cur == -* ]]; then word=${quoted(options.map((o) => o.name).join(' '))}; else word=${named === null ? quoted([...commands.map((c) => c.name), ...choices].join(' ')) : bashNames(named)}; fi ;;`,
  )
  .join('\n')}
  esac
  COMPREPLY=($(compgen -W "$word" -- "$cur"))
}
complete -o default -F _kronos kronos
`;
}

function zshCompletion(program: Command): string {
  const all = places(program);
  const described = (items: readonly { name: string; text: string }[]): string =>
    items.map(({ name, text }) => quoted(`${name.replaceAll(':', '\\:')}:${text}`)).join(' ');
  return `#compdef kronos
# Completion of kronos for zsh: source <(kronos completion zsh)
_kronos() {
  local at='' word names=''
  local -a commands options
${descend(all, ZSH_WORDS)}
  case "$at:\${words[CURRENT-1]}" in
${all
  .flatMap(({ path, values }) =>
    values.map(
      ({ names, choices, named }) =>
        `    ${names.map((name) => quoted(`${path}:${name}`)).join('|')}) ${named === null ? (choices === null ? '_files' : `compadd -- ${choices.map(quoted).join(' ')}`) : zshNames(named)}; return ;;`,
    ),
  )
  .join('\n')}
  esac
  case "$at" in
${all
  .map(
    ({ path, commands, options, choices, named }) =>
      `    ${quoted(path)}) commands=(${described([...commands, ...choices.map((name) => ({ name, text: '' }))])}) options=(${described(options)})${named === null ? '' : ` names=${named}`} ;;`,
  )
  .join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then _describe option options
  elif [[ -n $names ]]; then compadd -- \${(f)"$(kronos __complete $names 2>/dev/null)"}
  elif (( \${#commands} )); then _describe command commands
  else _files
  fi
}
compdef _kronos kronos
`;
}

/** In single quotes fish reads a backslash before a backslash and before a quote only. */
const fishQuote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fishCompletion(program: Command): string {
  const all = places(program);
  const lines = all.flatMap(({ path, commands, options, values, choices, named }) => {
    const here = `complete -c kronos -n ${fishQuote(`__kronos_at ${fishQuote(path)}`)}`;
    return [
      ...commands.map(({ name, text }) => `${here} -f -a ${name} -d ${fishQuote(text)}`),
      ...(choices.length === 0 ? [] : [`${here} -f -a ${fishQuote(choices.join(' '))}`]),
      ...(named === null ? [] : [`${here} -f -a ${fishQuote(fishNames(named))}`]),
      ...options.map(({ name, short, text }) => {
        const value = values.find(({ names }) => names.includes(name));
        const takes =
          value === undefined
            ? ''
            : value.named !== null
              ? ` -x -a ${fishQuote(fishNames(value.named))}`
              : value.choices === null
                ? ' -r'
                : ` -x -a ${fishQuote(value.choices.join(' '))}`;
        return `${here}${short === null ? '' : ` -s ${short}`} -l ${name.replace(/^--/, '')}${takes} -d ${fishQuote(text)}`;
      }),
    ];
  });
  return `# Completion of kronos for fish: kronos completion fish > ~/.config/fish/completions/kronos.fish
function __kronos_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    if contains -- "$at $word" ${all
      .filter(({ path }) => path !== '')
      .map(({ path }) => fishQuote(path))
      .join(' ')}
      set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}
`;
}

const completions: Readonly<Record<(typeof shells)[number], (program: Command) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};
