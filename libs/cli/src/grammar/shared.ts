import { DEFAULT_CONFIG_FILE } from '@kronos/config/defaultFile';
import type { Command } from 'commander';
import { Option } from 'commander';
import { UsageError } from '../errors.ts';

/** The options of every command that reads the configuration. */
export type ConfigOption = { readonly config?: string };

/** Where kronos.conf is when `--config` does not say. */
export const CONFIG_VARIABLE = 'KRONOS_CONFIG';

export const withConfig = (command: Command): Command =>
  command.option(
    '-c, --config <file>',
    `Path of kronos.conf (default: $${CONFIG_VARIABLE}, else ${DEFAULT_CONFIG_FILE})`,
  );

/** For options that may be given several times. */
export const repeated = (value: string, previous: readonly string[] = []): string[] => [...previous, value];

/** Names: `gpu`, `gpu,general`; repeatable. Neither hosts nor aggregates of `[engine] aggregates` have commas in their names. */
export const names = (value: string, previous: readonly string[] = []): string[] => {
  const found = value.split(',').map((name) => name.trim());
  if (found.includes(''))
    throw new UsageError(`${JSON.stringify(value)} is not a list of names`, 'Write a name, or several as a,b.');
  return [...previous, ...found];
};

/** The aggregates that a command is about; absent: all in scope, or the only one. */
export type AggregateOption = { readonly aggregate?: readonly string[] };

export const withAggregate = (command: Command, text = 'Only this aggregate, or several: a,b'): Command =>
  command.option('-a, --aggregate <name>', text, names);

/** The kinds of names of the running system that a shell completes. */
export const nameKinds = ['aggregates', 'hosts', 'vms', 'plans'] as const;
export type NameKind = (typeof nameKinds)[number];

/** The forms in which a command prints its answer. */
const formats = ['table', 'wide', 'json', 'yaml'] as const;
export type OutputOption = { readonly output?: (typeof formats)[number]; readonly json?: boolean };

export const withOutput = (command: Command): Command =>
  command
    .addOption(new Option('-o, --output <format>', 'Print as').choices(formats))
    .addOption(new Option('--json', 'The same as -o json').conflicts('output'));

/** The options of every command that writes to the log. */
export type OperatorOptions = ConfigOption & OutputOption & { readonly comment?: string };

export const operatorCommand = (command: Command): Command =>
  withOutput(withConfig(command).option('-m, --comment <text>', 'Reason, recorded on the log'));

/** A whole number from `least` on. */
export const wholeNumber =
  (option: string, least = 0) =>
  (text: string): number => {
    if (/^\d{1,9}$/.test(text) && Number(text) >= least) return Number(text);
    throw new UsageError(`${option} takes a whole number of at least ${least}, not ${JSON.stringify(text)}`);
  };

/** A URL of HTTP. */
export const httpUrl =
  (option: string) =>
  (text: string): string => {
    if (/^https?:\/\/./.test(text)) return text;
    throw new UsageError(
      `${option} takes a URL, not ${JSON.stringify(text)}`,
      'Write it as http://HOST:PORT or https://HOST:PORT.',
    );
  };

/** Numbers of steps: `2`, `1,3`; repeatable. */
export const stepNumbers = (value: string, previous: readonly number[] = []): number[] => [
  ...previous,
  ...value.split(',').map((text) => {
    if (/^[1-9]\d{0,6}$/.test(text.trim())) return Number(text);
    throw new UsageError(`--step takes step numbers, not ${JSON.stringify(value)}`, 'Write --step 2 or --step 1,3.');
  }),
];
