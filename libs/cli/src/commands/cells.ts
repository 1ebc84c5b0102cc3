import { didYouMean } from '@kronos/config/nearest';
import { errorText, type Snapshot } from '@kronos/contracts';
import { control, requireCells } from '@kronos/operator';
import { aggregateState } from '@kronos/projections';
import { newestSnapshots } from '@kronos/replay';
import { parse as parseYaml } from 'yaml';
import { cellPlansOf, cellPlansText } from '../cells/status.ts';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { currentState, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { parseDuration } from '../times.ts';
import { readText } from './inputs.ts';
import { askForPlan } from './proposals.ts';

export type CellsPlanOptions = OperatorOptions & {
  readonly from: readonly string[];
  readonly to: string;
  readonly flavorMap?: string;
  readonly server?: readonly string[];
  readonly project?: string;
  readonly limit?: number;
  readonly wait: string;
};
export type CellsStatusOptions = ConfigOption & OutputOption & AggregateOption;

/** kronos cells plan. */
export async function cellsPlan(shell: Shell, options: CellsPlanOptions): Promise<void> {
  const waitMs = parseDuration('--wait', options.wait);
  const flavorMap = options.flavorMap === undefined ? {} : readFlavorMap(options.flavorMap);
  await withSession(shell, options, async (session) => {
    const between = session.config.cells.aggregates.map(({ aggregate }) => aggregate);
    const aggregate = sourceOf(await newestSnapshots(session.log, session.scope), session.scope, options.from);
    requireCells(between, session.scope, aggregate, options.to);
    await askForPlan(shell, session, options, {
      aggregate,
      waitMs,
      ask: (asking) =>
        control(
          'cells.moveAsked',
          aggregate,
          {
            from: [...options.from],
            to: options.to,
            flavorMap,
            servers: options.server === undefined ? null : [...options.server],
            project: options.project ?? null,
            limit: options.limit ?? null,
          },
          asking,
        ),
    });
  });
}

/** kronos cells status. */
export async function cellsStatus(shell: Shell, options: CellsStatusOptions): Promise<void> {
  await withSession(shell, options, async ({ log, scope }) => {
    const state = await currentState(shell, log);
    const states = filterAggregates(scope, options.aggregate).map((name) => aggregateState(state, name));
    const found = cellPlansOf(states, shell.now());
    await answer(shell, options, found, (terminal) => cellPlansText(terminal, found, shell.now()));
  });
}

/** The aggregate that the sources are, or are hosts of. @throws UsageError for names that are not there, and for several aggregates */
export function sourceOf(
  snapshots: readonly Pick<Snapshot, 'aggregate' | 'hosts'>[],
  scope: readonly string[],
  from: readonly string[],
): string {
  const found = from.map((name) => {
    const at = scope.includes(name)
      ? name
      : snapshots.find(({ hosts }) => hosts.some((host) => host.name === name))?.aggregate;
    if (at !== undefined) return at;
    const known = [...scope, ...snapshots.flatMap(({ hosts }) => hosts.map((host) => host.name))];
    throw new UsageError(
      `--from ${name} is neither an aggregate in scope nor a host in the newest snapshots`,
      `${didYouMean(name, known)}kronos aggregates and kronos hosts list them.`,
    );
  });
  const [only, ...others] = [...new Set(found)];
  if (only === undefined)
    throw new UsageError('--from names no aggregate and no host', 'Name an aggregate or hosts: --from old.');
  if (others.length > 0)
    throw new UsageError(
      `--from names hosts of several aggregates: ${[only, ...others].join(', ')}`,
      'A plan is about the hosts of one aggregate: run the command once for each.',
    );
  return only;
}

/** Old flavor -> new flavor, as YAML or JSON. @throws UsageError that names the file */
export function readFlavorMap(file: string): Record<string, string> {
  const text = readText('--flavor-map', file);
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    throw new UsageError(`--flavor-map ${file} is not YAML: ${errorText(error)}`);
  }
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  const named = entries.flatMap(([from, to]): [string, string][] => (typeof to === 'string' ? [[from, to]] : []));
  if (named.length > 0 && named.length === entries.length) return Object.fromEntries(named);
  throw new UsageError(
    `--flavor-map ${file} is not a map of flavors`,
    'Write one line for each flavor: OLD-FLAVOR: NEW-FLAVOR.',
  );
}
