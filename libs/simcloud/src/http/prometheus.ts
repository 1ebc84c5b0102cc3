import type { Cloud } from '../cloud.ts';
import { evaluatePromql, type Value } from '../promql.ts';
import { PromqlError, parse, UNITS } from '../promqlParser.ts';
import { instant, METRICS, type SimSample } from '../series.ts';
import { type Call, JSON_TYPE, json, type Reply } from './exchange.ts';

/** Prometheus' most points of one series in a range query. */
const MOST_POINTS = 11_000;
/** The beginning of the answer to a query. Answers are put together from text: they are most of what the simulated APIs send. */
const HEAD = '{"status":"success","data":{"resultType":';

/** The part of Prometheus' HTTP API that Kronos uses: query, query_range, the values of a label, status/runtimeinfo, and health. */
export function answerPrometheus(cloud: Cloud, call: Call): Reply {
  const form = call.method === 'POST' ? new URLSearchParams(call.body) : new URLSearchParams();
  const parameter: Parameter = (name) => form.get(name) ?? call.query.get(name) ?? '';
  try {
    switch (call.path) {
      case '/-/healthy':
      case '/-/ready':
        return plain(200, 'Prometheus Server is Ready.\n');
      case '/api/v1/status/runtimeinfo':
        return success(runtimeInfo(cloud));
      case '/api/v1/query': {
        const expression = parse(parameter('query'));
        const at = parameter('time') === '' ? call.nowMs : time('time', parameter('time'));
        const value = evaluatePromql(cloud, expression, at);
        return { status: 200, headers: { 'Content-Type': JSON_TYPE }, body: instantBody(value, at) };
      }
      case '/api/v1/query_range':
        return overRange(cloud, call, parameter);
      default: {
        const label = /^\/api\/v1\/label\/([A-Za-z_]\w*)\/values$/.exec(call.path)?.[1];
        if (label !== undefined) return success(labelValues(cloud, label, call.nowMs));
        return plain(404, '404 page not found\n');
      }
    }
  } catch (error) {
    if (error instanceof Bad) return bad(error.message);
    if (error instanceof PromqlError) return bad(`invalid parameter "query": ${error.message}`);
    throw error;
  }
}

/** The value of a parameter of the query or the form; empty when neither has it. */
type Parameter = (name: string) => string;

const plain = (status: number, body: string): Reply => ({
  status,
  headers: { 'Content-Type': 'text/plain; charset=utf-8' },
  body,
});

const runtimeInfo = (cloud: Cloud) => ({
  startTime: new Date(cloud.startMs).toISOString(),
  CWD: '/',
  reloadConfigSuccess: true,
  lastConfigTime: new Date(cloud.startMs).toISOString(),
  corruptionCount: 0,
  goroutineCount: 25,
  GOMAXPROCS: 2,
  GOMEMLIMIT: 4_294_967_296,
  GOGC: '75',
  GODEBUG: '',
  storageRetention: '15d',
});

/** @throws Bad */
function rangeAsked(parameter: Parameter): { readonly start: number; readonly end: number; readonly step: number } {
  const start = time('start', parameter('start'));
  const end = time('end', parameter('end'));
  if (end < start) throw new Bad('invalid parameter "end": end timestamp must not be before start time');
  const step = duration(parameter('step'));
  if (step <= 0)
    throw new Bad(
      'invalid parameter "step": zero or negative query resolution step widths are not accepted. Try a positive integer',
    );
  if ((end - start) / step > MOST_POINTS)
    throw new Bad(
      'exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)',
    );
  return { start, end, step };
}

/** The answer to a range query. */
function overRange(cloud: Cloud, call: Call, parameter: Parameter): Reply {
  const { start, end, step } = rangeAsked(parameter);
  const expression = parse(parameter('query'));
  /** By labels as JSON. A value that stays as it is, as most do, is written once. */
  const series = new Map<string, { points: string; value: number; text: string }>();
  let loaded = 0;
  // Before its start the cloud had no samples; after now it has none yet.
  for (let at = start; at <= end && at <= call.nowMs; at += step) {
    const found = evaluatePromql(cloud, expression, at);
    const samples: readonly Pick<SimSample, 'labels' | 'value'>[] =
      'scalar' in found ? [{ labels: {}, value: found.scalar }] : found.vector;
    loaded += samples.length;
    if (loaded > cloud.scenario.maxSamples) return tooManySamples();
    const head = `[${at / 1000},"`;
    for (const { labels, value } of samples) {
      const metric = textOf(labels);
      const one = series.get(metric);
      if (one === undefined) {
        const text = `${show(value)}"]`;
        series.set(metric, { points: head + text, value, text });
        continue;
      }
      if (one.value !== value) {
        one.value = value;
        one.text = `${show(value)}"]`;
      }
      one.points += `,${head}${one.text}`;
    }
  }
  const result = Array.from(series, ([metric, { points }]) => `{"metric":${metric},"values":[${points}]}`);
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE },
    body: `${HEAD}"matrix","result":[${result.join()}]}}`,
  };
}

/** The values that a label has in any series, sorted. */
function labelValues(cloud: Cloud, label: string, nowMs: number): string[] {
  const samples = Object.keys(METRICS).flatMap((metric) => instant(cloud, metric, nowMs));
  return [...new Set(samples.flatMap(({ labels }) => labels[label] ?? []))].sort();
}

class Bad extends Error {}

function bad(error: string): Reply {
  return json(400, { status: 'error', errorType: 'bad_data', error });
}

/** Prometheus' answer to a query that is too large for it. */
const tooManySamples = (): Reply =>
  json(422, {
    status: 'error',
    errorType: 'execution',
    error: 'query processing would load too many samples into memory in query execution',
  });

function success(data: unknown): Reply {
  return json(200, { status: 'success', data });
}

/** Milliseconds, from seconds or an RFC 3339 time. */
function time(name: string, given: string): number {
  const value = /^-?\d+(\.\d+)?$/.test(given) ? Number(given) * 1000 : Date.parse(given);
  if (given !== '' && !Number.isNaN(value)) return value;
  const lead = name === 'time' ? `Invalid time value for 'time': ` : '';
  throw new Bad(`invalid parameter "${name}": ${lead}cannot parse "${given}" to a valid timestamp`);
}

/** Milliseconds, from seconds or a duration such as `30s`. */
function duration(given: string): number {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(given);
  if (found === null) throw new Bad(`invalid parameter "step": cannot parse "${given}" to a valid duration`);
  return Number(found[1]) * (UNITS[found[2] ?? 's'] ?? 1000);
}

/** Labels as JSON. They are the same objects from query to query. */
const written = new WeakMap<Readonly<Record<string, string>>, string>();

function instantBody(value: Value, atMs: number): string {
  const at = atMs / 1000;
  if ('scalar' in value) return `${HEAD}"scalar","result":[${at},"${show(value.scalar)}"]}}`;
  const result = value.vector.map(
    (sample) => `{"metric":${textOf(sample.labels)},"value":[${at},"${show(sample.value)}"]}`,
  );
  return `${HEAD}"vector","result":[${result.join()}]}}`;
}

function textOf(labels: Readonly<Record<string, string>>): string {
  let text = written.get(labels);
  if (text === undefined) {
    text = JSON.stringify(labels);
    written.set(labels, text);
  }
  return text;
}

/** A number as Prometheus writes it: no exponent, `NaN`, `+Inf`, `-Inf`. */
function show(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  const plain = String(value);
  if (!plain.includes('e')) return plain;
  return value.toFixed(20).replace(/\.?0+$/, '');
}
