// Joins the options of all sections, and derives the type of the configuration from them.

import type { Option } from './option.ts';
import { cells } from './options/cells.ts';
import { console } from './options/console.ts';
import { engine } from './options/engine.ts';
import { executor } from './options/executor.ts';
import { http } from './options/http.ts';
import { inventory } from './options/inventory.ts';
import { ledger } from './options/ledger.ts';
import { log } from './options/log.ts';
import { nats } from './options/nats.ts';
import { nova } from './options/nova.ts';
import { prometheus } from './options/prometheus.ts';
import type { sinkOptions } from './options/sink.ts';
import { telemetry } from './options/telemetry.ts';

/**
 * Every option of kronos.conf: the one table from which the parser, the types, `kronos config sample` and
 * docs/configuration.md come. Durations are seconds, sizes bytes.
 */
export const options = {
  engine,
  executor,
  cells,
  inventory,
  nova,
  prometheus,
  nats,
  ledger,
  console,
  http,
  log,
  telemetry,
} as const;

export type SinkOptions = {
  readonly [O in keyof typeof sinkOptions & string as Camel<O>]: (typeof sinkOptions)[O] extends Option<infer T>
    ? T
    : never;
};

type Options = typeof options;
export type SectionName = keyof Options;

/** `section.option` of an option that exists. */
export type OptionPath = { [S in SectionName]: `${S}.${keyof Options[S] & string}` }[SectionName];

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

/** `evaluation_interval` -> `evaluationInterval`. */
export const camel = (name: string): string =>
  name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

type Sections = {
  readonly [S in SectionName]: {
    readonly [O in keyof Options[S] & string as Camel<O>]: Options[S][O] extends Option<infer T> ? T : never;
  };
};

/**
 * The configuration: `config.engine.evaluationInterval`. Every option is there, absent ones as null; durations are
 * seconds, sizes bytes, secrets {@link Secret} (also those that came from a file).
 */
export type Config = Sections & {
  /** The options of the sections `[aggregate:NAME]`, by aggregate. Use `aggregateConfig` to read an aggregate's options. */
  readonly overrides: ReadonlyMap<string, Partial<Sections['engine']>>;
  /** The sections `[notify:NAME]`, by name. */
  readonly sinks: ReadonlyMap<string, SinkOptions>;
};

/** The options of `[engine]` that are the same for every aggregate, and why. A section `[aggregate:NAME]` may set the others. */
export const commonToAggregates: ReadonlyMap<string, string> = new Map<keyof Options['engine'], string>([
  ['aggregates', 'it is the list of the aggregates'],
  ['include_unassigned_hosts', 'it belongs to the list of the aggregates'],
  ['evaluation_interval', 'the scorer reads the cloud once for all aggregates'],
  ['max_clock_skew', 'each service has one clock'],
  ['search_threads', 'the planner has the same threads for all aggregates'],
  ['opt_out', 'it applies to servers wherever they run'],
]);

/** The table for code that goes over it. */
export const sections: ReadonlyMap<string, ReadonlyMap<string, Option<unknown>>> = new Map(
  Object.entries(options).map(([name, section]) => [name, new Map<string, Option<unknown>>(Object.entries(section))]),
);

/** One line about each section. */
export const sectionHelp: Readonly<Record<SectionName, string>> = {
  engine: 'What is balanced, how often, and by which rules.',
  executor:
    'How moves are carried out. The host breaker stands here and is read by the planner, which chooses the hosts.',
  cells: 'Moves between cells, which an operator starts with kronos cells plan.',
  inventory: 'How the servers of the cloud are kept up to date.',
  nova: 'How Nova, Placement and Keystone are reached (the options of keystoneauth), and what counts there.',
  prometheus: 'How Prometheus is reached.',
  nats: 'How NATS is reached, and how large the streams may become.',
  ledger: 'Checkpoints and the archive of the event log.',
  console: 'Commands from the console; off by default.',
  http: 'The HTTP server of each service.',
  log: 'Logging, to standard output.',
  telemetry: 'OpenTelemetry traces. Metrics are served on /metrics in any case.',
};
