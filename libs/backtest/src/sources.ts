/** The sources of a reconstruction in its directory: what was read, so that it is read once. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { type EngineOptions, engineOptionsSchema, type Policy, policySchema } from '@kronos/contracts';
import type { ObserveOptions } from '@kronos/observation';
import { isMissing, RecordingInvalid } from '@kronos/replay';
import { z } from 'zod';
import type { NovaHistory } from './past.ts';
import { type SeriesWindow, WINDOW_POINTS } from './readSeries.ts';

export const SOURCES = 'sources';
const PARAMETERS = join(SOURCES, 'backtest.json');
const NOVA = join(SOURCES, 'nova.json.gz');
const SERIES = join(SOURCES, 'series');

const aggregateSchema = z.object({
  policies: z.array(policySchema),
  balance: z.boolean(),
  options: engineOptionsSchema,
});
const parametersSchema = z.object({
  form: z.literal(1),
  /** The range in the words of the person, so that an interrupted run goes on with its own. */
  asked: z.string(),
  /** First and last step, ms since the epoch. */
  sinceMs: z.number(),
  untilMs: z.number(),
  stepMs: z.number().positive(),
  stalenessMs: z.number().positive(),
  observe: z.object({
    hypervisorTypes: z.array(z.string()),
    optOut: z.array(z.string()),
    cells: z.array(z.object({ cell: z.string(), hosts: z.string() })),
  }),
  aggregates: z.record(z.string(), aggregateSchema),
  /** The sources in words. */
  sources: z.array(z.string()),
});
export type Parameters = {
  readonly form: 1;
  readonly asked: string;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly stepMs: number;
  readonly stalenessMs: number;
  readonly observe: ObserveOptions;
  readonly aggregates: Readonly<
    Record<string, { readonly policies: readonly Policy[]; readonly balance: boolean; readonly options: EngineOptions }>
  >;
  readonly sources: readonly string[];
};

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** The number of steps from the first to the last time of a range, both included. */
export const stepCount = ({ sinceMs, untilMs, stepMs }: Pick<Parameters, 'sinceMs' | 'untilMs' | 'stepMs'>): number =>
  Math.floor((untilMs - sinceMs) / stepMs) + 1;

/** The windows of a range: first step and number of steps. */
export function windowsOf(parameters: Parameters): { readonly startMs: number; readonly points: number }[] {
  const steps = stepCount(parameters);
  return Array.from({ length: Math.ceil(steps / WINDOW_POINTS) }, (_, i) => ({
    startMs: parameters.sinceMs + i * WINDOW_POINTS * parameters.stepMs,
    points: Math.min(WINDOW_POINTS, steps - i * WINDOW_POINTS),
  }));
}

export type BacktestSources = {
  readonly directory: string;
  readonly writeNova: (history: NovaHistory) => Promise<void>;
  /** Null: it was not read yet. @throws RecordingInvalid */
  readonly readNova: () => Promise<NovaHistory | null>;
  readonly hasWindow: (query: number, window: number) => boolean;
  readonly writeWindow: (query: number, window: number, value: SeriesWindow) => Promise<void>;
  /** @throws RecordingInvalid */
  readonly readWindow: (query: number, window: number) => Promise<SeriesWindow>;
  /** Names of all files, relative to the directory. */
  readonly files: () => Promise<string[]>;
};

/** A file appears whole or not at all. */
async function put(path: string, bytes: Uint8Array | string): Promise<void> {
  await writeFile(`${path}.part`, bytes);
  await rename(`${path}.part`, path);
}

async function get<T>(path: string): Promise<T | null> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw new RecordingInvalid(path, 'cannot be read', undefined, { cause });
  }
  try {
    return JSON.parse((await unzip(bytes)).toString('utf8')) as T;
  } catch (cause) {
    throw new RecordingInvalid(path, 'is no source of a backtest', undefined, { cause });
  }
}

/** The sources of a backtest as files of a directory. Reads throw RecordingInvalid for a file that is no source. */
export function sourcesIn(directory: string): BacktestSources {
  const fileOf = (query: number, window: number): string =>
    join(directory, SERIES, `${query}-${String(window).padStart(5, '0')}.json.gz`);
  return {
    directory,
    writeNova: async (history) => put(join(directory, NOVA), await zip(JSON.stringify(history))),
    readNova: () => get<NovaHistory>(join(directory, NOVA)),
    hasWindow: (query, window) => existsSync(fileOf(query, window)),
    writeWindow: async (query, window, value) => put(fileOf(query, window), await zip(JSON.stringify(value))),
    async readWindow(query, window) {
      const file = fileOf(query, window);
      const found = await get<SeriesWindow>(file);
      if (found === null) throw new RecordingInvalid(file, 'is not there');
      return found;
    },
    async files() {
      const series = await readdir(join(directory, SERIES));
      const whole = series.filter((name) => name.endsWith('.gz')).sort();
      return [PARAMETERS, NOVA, ...whole.map((name) => join(SERIES, name))].map((file) => file.replaceAll('\\', '/'));
    },
  };
}

/** The parameters of the backtest in a directory; null: there is none. @throws RecordingInvalid */
export async function readParameters(directory: string): Promise<Parameters | null> {
  const path = join(directory, PARAMETERS);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw new RecordingInvalid(path, 'cannot be read', undefined, { cause });
  }
  try {
    return parametersSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new RecordingInvalid(path, 'is of no backtest', undefined, { cause });
  }
}

export async function writeParameters(directory: string, parameters: Parameters): Promise<void> {
  await mkdir(join(directory, SERIES), { recursive: true });
  await put(join(directory, PARAMETERS), `${JSON.stringify(parameters, null, 2)}\n`);
}
