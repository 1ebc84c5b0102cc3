import {
  type CallInProgress,
  type CallPlace,
  CallsInProgress,
  type HttpAnswer,
  parseAs,
  withoutMarkup,
} from '@kronos/http';
import { z } from 'zod';
import { BadAnswer, BadQuery, PrometheusUnauthorized, ServerError, Timeout } from './errors.ts';
import { createPrometheusTransport, DEFAULT_TIMEOUT_MS, type PrometheusOptions } from './transport.ts';

/** One series' value at one time. `value` may be NaN or infinite. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly timeMs: number;
  readonly value: number;
}

/** One series' values over a range. */
export interface RangeSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly samples: readonly { readonly timeMs: number; readonly value: number }[];
}

/** Remarks of Prometheus on an answer. With `warnings`, the answer may be incomplete. */
interface Remarks {
  readonly warnings: readonly string[];
  readonly infos: readonly string[];
}

export interface Prometheus {
  /**
   * The value of each series of `query` now, or at `timeMs`.
   *
   * @throws BadQuery (also when the result is no instant vector), PrometheusUnauthorized, ServerError, Unreachable, Timeout, BadAnswer.
   */
  instant(
    query: string,
    options?: { readonly timeMs?: number; readonly signal?: AbortSignal | undefined },
  ): Promise<Remarks & { readonly samples: readonly Sample[] }>;
  /** The values of each series of `query` from `startMs` to `endMs`, every `stepMs`. @throws as `instant` */
  range(
    query: string,
    range: { readonly startMs: number; readonly endMs: number; readonly stepMs: number },
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Remarks & { readonly series: readonly RangeSeries[] }>;
  /**
   * Whether it answers, by `/api/v1/status/runtimeinfo`. `startedAt` is undefined where the answer does not say (other
   * servers that speak Prometheus' query API may not have the page: a 404 is an answer).
   *
   * @throws PrometheusUnauthorized, ServerError, Unreachable, Timeout, BadAnswer.
   */
  runtimeInfo(options?: {
    readonly signal?: AbortSignal | undefined;
  }): Promise<{ readonly startedAt: string | undefined }>;
  /** The names of all metrics that have series. @throws as `runtimeInfo` */
  metricNames(options?: { readonly signal?: AbortSignal | undefined }): Promise<readonly string[]>;
  /**
   * The type of a metric as its exporters declare it: `counter`, `gauge`, `histogram`, `summary`, `info` and so on. Null where
   * none declares one, where they disagree, and where the server keeps no metadata (a 404 is an answer). @throws as `runtimeInfo`
   */
  metricType(metric: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<string | null>;
  /** The calls that are under way, the oldest first. */
  inProgress(): readonly CallInProgress[];
  close(): Promise<void>;
}

const labels = z.record(z.string(), z.string());
type Point = { readonly timeMs: number; readonly value: number };

/** A sample as Prometheus writes it, `[seconds, "value"]`, or its problem. Not a schema: a matrix has tens of thousands of samples. */
function pointOf(raw: unknown): Point | string {
  const [time, text, ...more] = Array.isArray(raw) ? (raw as readonly unknown[]) : [];
  if (!Number.isFinite(time) || typeof text !== 'string' || more.length > 0)
    return 'not a sample: [seconds, "value"] is expected';
  const value = parseValue(text);
  return value === undefined ? `not a sample value: "${text}"` : { timeMs: Math.round((time as number) * 1000), value };
}

const point = z.unknown().transform((raw, context): Point => {
  const read = pointOf(raw);
  if (typeof read !== 'string') return read;
  context.addIssue({ code: 'custom', message: read });
  return z.NEVER;
});
const points = z.array(z.unknown()).transform((raws, context): Point[] =>
  raws.map((raw, i) => {
    const read = pointOf(raw);
    if (typeof read !== 'string') return read;
    context.addIssue({ code: 'custom', path: [i], message: read });
    return z.NEVER;
  }),
);

const vectorSchema = z.array(z.object({ metric: labels, value: point }));
const matrixSchema = z.array(z.object({ metric: labels, values: points }));

/** The envelope of every answer of the API, including most errors. */
const envelopeSchema = z.object({
  status: z.enum(['success', 'error']),
  errorType: z.string().optional(),
  error: z.string().optional(),
  warnings: z.array(z.string()).nullish(),
  infos: z.array(z.string()).nullish(),
  /** VictoriaMetrics' cluster: some storage nodes did not answer. Source: its documentation, "Cluster availability". */
  isPartial: z.boolean().nullish(),
  data: z.unknown().optional(),
});
const querySchema = z.object({ resultType: z.string(), result: z.unknown().optional() });
const metadataSchema = z.record(z.string(), z.array(z.object({ type: z.string() })));
const runtimeSchema = z.object({ startTime: z.string().optional() });

/** Native histograms come in the place of values. Source: Prometheus' HTTP API, "Native histograms". */
const histogramSchema = z.tuple(
  [z.union([z.object({ histogram: z.unknown() }), z.object({ histograms: z.unknown() })])],
  z.unknown(),
);
const HISTOGRAMS = 'it gives histograms; compute one value of each, such as histogram_avg(rate(...[5m]))';
const PARTIAL = 'the answer is partial (isPartial): a storage node did not answer';
/** Why a result of another type cannot be used. */
const resultTypes: Readonly<Record<string, string>> = {
  matrix: 'it gives the values of a time range (a matrix); put it into a function, such as rate() or avg_over_time()',
  scalar: 'it gives one number without labels (a scalar); select series whose labels name hosts or VMs',
  string: 'it gives a text (a string); select series whose labels name hosts or VMs',
};

/** A query with the further parameters of its path. */
type Asked = Readonly<Record<string, string>> & { readonly path: string; readonly query: string };
type ResultKind<S extends z.ZodType> = { readonly resultType: string; readonly schema: S };
const VECTOR: ResultKind<typeof vectorSchema> = { resultType: 'vector', schema: vectorSchema };
const MATRIX: ResultKind<typeof matrixSchema> = { resultType: 'matrix', schema: matrixSchema };

/** The result of a query. @throws BadQuery when it is of another kind, BadAnswer when it cannot be read */
function resultOf<S extends z.ZodType>(
  { resultType, schema }: ResultKind<S>,
  place: CallPlace,
  query: string,
  raw: unknown,
): z.infer<S> {
  const data = querySchema.safeParse(raw);
  if (!data.success) throw new BadAnswer(place, 'missing resultType or result', 'data');
  const given = data.data.resultType;
  if (given !== resultType) throw new BadQuery(query, 'result_type', resultTypes[given] ?? `it gives a ${given}`);
  if (histogramSchema.safeParse(data.data.result).success) throw new BadQuery(query, 'result_type', HISTOGRAMS);
  const result = schema.safeParse(data.data.result);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new BadAnswer(place, issue?.message ?? 'unexpected shape', `data.result.${issue?.path.join('.') ?? ''}`);
}

/** The envelope of a successful answer. @throws PrometheusUnauthorized, Timeout, BadQuery, ServerError, BadAnswer */
function opened(
  place: CallPlace,
  answer: HttpAnswer,
  asked: { readonly query: string | undefined; readonly timeoutMs: number; readonly credentials: string },
): z.infer<typeof envelopeSchema> {
  const { query, timeoutMs, credentials } = asked;
  if (answer.status === 401 || answer.status === 403)
    throw new PrometheusUnauthorized(place.url, answer.status, credentials, wordsOf(answer.text));
  if (answer.status >= 200 && answer.status < 300) {
    const envelope = parseAs(place, envelopeSchema, answer.text);
    if (envelope.status === 'success') return envelope;
  }
  const envelope = readEnvelope(answer.text);
  const errorType = envelope?.errorType;
  const reason = wordsOf(answer.text);
  if (errorType === 'timeout')
    throw new Timeout(place, 'headers', timeoutMs, { maybeSent: true, cause: new Error(reason) });
  if (query !== undefined && (errorType === 'bad_data' || errorType === 'execution')) {
    throw new BadQuery(query, errorType, reason);
  }
  throw new ServerError(place.url, answer.status, reason);
}

/** A client of Prometheus' HTTP API. @throws BadPrometheusOptions */
export function createPrometheus(options: PrometheusOptions): Prometheus {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const { inProgress = new CallsInProgress() } = options;
  const proxied = options.keystone !== undefined;
  const { get, ask, credentials, close } = createPrometheusTransport({ ...options, inProgress });

  const open = (place: CallPlace, answer: HttpAnswer, query?: string): z.infer<typeof envelopeSchema> =>
    opened(place, answer, { query, timeoutMs, credentials });

  async function query<S extends z.ZodType>(
    kind: ResultKind<S>,
    { path, query: text, ...form }: Asked,
    signal: AbortSignal | undefined,
  ): Promise<Remarks & { result: z.infer<S> }> {
    const { place, answer } = await ask(path, { query: text, ...form }, signal);
    const envelope = open(place, answer, text);
    return { result: resultOf(kind, place, text, envelope.data), ...remarksOf(envelope) };
  }

  /** The latest time that was asked for: where a query cannot state a time, it means now. */
  let nowMs = Number.NEGATIVE_INFINITY;

  return {
    async instant(text, { timeMs, signal } = {}) {
      nowMs = Math.max(nowMs, timeMs ?? nowMs);
      const asked = { path: '/api/v1/query', query: text };
      // The proxy of OpenStack takes the query alone: no time, no limit, and no other endpoint for a range.
      const form = { timeout: seconds(timeoutMs), ...(timeMs === undefined ? {} : { time: unix(timeMs) }) };
      const { result, ...remarks } = await query(VECTOR, proxied ? asked : { ...asked, ...form }, signal);
      return { samples: result.map(({ metric, value }) => ({ labels: metric, ...value })), ...remarks };
    },

    async range(text, { startMs, endMs, stepMs }, { signal } = {}) {
      const at = endMs >= nowMs ? '' : ` @ ${unix(endMs)}`;
      const subquery = `(${text})[${Math.max(1, endMs - startMs)}ms:${stepMs}ms]${at}`;
      const times = { timeout: seconds(timeoutMs), start: unix(startMs), end: unix(endMs), step: unix(stepMs) };
      const asked = proxied
        ? { path: '/api/v1/query', query: subquery }
        : { path: '/api/v1/query_range', query: text, ...times };
      const { result, ...remarks } = await query(MATRIX, asked, signal);
      return { series: result.map(({ metric, values }) => ({ labels: metric, samples: values })), ...remarks };
    },

    async runtimeInfo({ signal } = {}) {
      const { place, answer } = await get('/api/v1/status/runtimeinfo', signal);
      if (answer.status === 404) return { startedAt: undefined };
      const info = runtimeSchema.safeParse(open(place, answer).data);
      return { startedAt: info.success ? info.data.startTime : undefined };
    },

    async metricNames({ signal } = {}) {
      const { place, answer } = await get('/api/v1/label/__name__/values', signal);
      const names = z.array(z.string()).safeParse(open(place, answer).data);
      if (!names.success) throw new BadAnswer(place, 'the names of metrics are no list of texts', 'data');
      return names.data;
    },

    async metricType(metric, { signal } = {}) {
      const { place, answer } = await get('/api/v1/metadata', signal, { metric });
      if (answer.status === 404) return null;
      const declared = metadataSchema.safeParse(open(place, answer).data);
      if (!declared.success) throw new BadAnswer(place, 'the metadata of the metric has no types', 'data');
      const types = new Set((declared.data[metric] ?? []).map(({ type }) => type).filter((type) => type !== 'unknown'));
      const [type = null] = types;
      return types.size === 1 ? type : null;
    },

    inProgress: () => inProgress.list(),
    close,
  };
}

const remarksOf = ({ warnings, infos, isPartial }: z.infer<typeof envelopeSchema>): Remarks => ({
  warnings: [...(warnings ?? []), ...(isPartial === true ? [PARTIAL] : [])],
  infos: infos ?? [],
});

/** A sample value as Prometheus writes it: a decimal, `NaN`, `+Inf`, `-Inf`; undefined for anything else. */
export function parseValue(text: string): number | undefined {
  switch (text) {
    case 'NaN':
      return Number.NaN;
    case '+Inf':
    case 'Inf':
      return Number.POSITIVE_INFINITY;
    case '-Inf':
      return Number.NEGATIVE_INFINITY;
  }
  const value = Number(text);
  return text.trim() === '' || Number.isNaN(value) ? undefined : value;
}

/** The words of an answer that is no result: the error of the API, else its text without markup. */
const wordsOf = (text: string): string => readEnvelope(text)?.error ?? withoutMarkup(text, 200);

function readEnvelope(text: string): z.infer<typeof envelopeSchema> | undefined {
  try {
    return envelopeSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Unix time or duration in seconds, with milliseconds. */
function unix(ms: number): string {
  return (ms / 1000).toFixed(3);
}

function seconds(ms: number): string {
  return `${ms}ms`;
}
