import type { Cloud } from './cloud.ts';
import { AGGREGATE, OPERATE, OVER_TIME } from './promqlFunctions.ts';
import { type Expression, PromqlError, type Selector } from './promqlParser.ts';
import { instant, type SimSample } from './series.ts';

function select(cloud: Cloud, selector: Selector, atMs: number): SimSample[] {
  let metrics = [selector.metric];
  if (selector.metric === '') {
    const named = selector.matchers.filter((matcher) => matcher.label === '__name__');
    metrics =
      named.length === 0 ? [] : ['up', ...KNOWN].filter((name) => named.every((m) => m.test(name) !== m.negative));
  }
  const { matchers } = selector;
  return metrics.flatMap((metric) => {
    const samples = instant(cloud, metric, atMs);
    if (matchers.length === 0) return samples;
    return samples.filter((sample) =>
      matchers.every((matcher) => matcher.test(sample.labels[matcher.label] ?? '') !== matcher.negative),
    );
  });
}

const KNOWN = [
  'host_cpu_utilisation',
  'host_mem_utilisation',
  'host_cpu_cores',
  'host_mem_mb',
  'vm_cpu_cores',
  'vm_mem_mb',
];

/** Labels -> the same without the metric's name. */
const unnamed = new WeakMap<Readonly<Record<string, string>>, Readonly<Record<string, string>>>();

function nameless(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  let rest = unnamed.get(labels);
  if (rest === undefined) {
    const { __name__: _, ...kept } = labels;
    rest = Object.freeze(kept);
    unnamed.set(labels, rest);
  }
  return rest;
}

export type Value = { readonly scalar: number } | { readonly vector: readonly SimSample[] };

/** The value of an expression at `atMs`. @throws PromqlError for a range selector alone, which has none */
export function evaluatePromql(cloud: Cloud, expression: Expression, atMs: number): Value {
  switch (expression.kind) {
    case 'number':
      return { scalar: expression.value };
    case 'selector':
      if (expression.rangeMs !== null)
        throw new PromqlError(
          'invalid expression type "range vector" for range query, must be Scalar or instant Vector',
        );
      return { vector: select(cloud, expression, atMs) };
    case 'call':
      return { vector: called(cloud, expression, atMs) };
    case 'sum':
      return { vector: aggregated(cloud, expression, atMs) };
    case 'binary':
      return combined(cloud, expression, atMs);
  }
}

type Of<Kind extends Expression['kind']> = Extract<Expression, { readonly kind: Kind }>;

function called(cloud: Cloud, { name, argument }: Of<'call'>, atMs: number): SimSample[] {
  if (name === 'timestamp') {
    const inner = evaluatePromql(cloud, argument, atMs);
    if ('scalar' in inner)
      throw new PromqlError(`expected type instant vector in call to function "${name}", got scalar`);
    return inner.vector.map(({ labels, atMs: at }) => ({ labels: nameless(labels), value: at / 1000, atMs: at }));
  }
  const over = OVER_TIME[name];
  if (over === undefined || argument.kind !== 'selector' || argument.rangeMs === null)
    throw new PromqlError(`unknown function with name "${name}"`);
  const named = name === 'last_over_time' ? (labels: SimSample['labels']) => labels : nameless;
  const series = seriesIn(cloud, argument, { fromMs: atMs - argument.rangeMs, untilMs: atMs }, named);
  return series.map(({ labels, values }) => ({ labels, value: over(values), atMs }));
}

/** The values of each series in a range, oldest first, with the labels that `named` leaves. */
function seriesIn(
  cloud: Cloud,
  selector: Selector,
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
  named: (labels: SimSample['labels']) => SimSample['labels'],
): { readonly labels: SimSample['labels']; readonly values: readonly number[] }[] {
  const stepMs = cloud.scenario.scrapeSeconds * 1000;
  const series = new Map<string, { labels: SimSample['labels']; values: number[]; seen: Set<number> }>();
  // A long range is thinned: the simulated series are smooth, 60 samples say enough.
  const stride = Math.max(1, Math.floor((untilMs - fromMs) / stepMs / 60)) * stepMs;
  for (let t = untilMs; t > fromMs && t >= cloud.startMs - stepMs; t -= stride) {
    for (const sample of select(cloud, selector, t)) {
      if (sample.atMs <= fromMs) continue;
      const labels = named(sample.labels);
      const key = JSON.stringify(labels);
      let entry = series.get(key);
      if (entry === undefined) {
        entry = { labels, values: [], seen: new Set() };
        series.set(key, entry);
      }
      if (entry.seen.has(sample.atMs)) continue;
      entry.seen.add(sample.atMs);
      entry.values.unshift(sample.value);
    }
  }
  return [...series.values()];
}

function aggregated(cloud: Cloud, { name, by, argument }: Of<'sum'>, atMs: number): SimSample[] {
  const inner = evaluatePromql(cloud, argument, atMs);
  if ('scalar' in inner) throw new PromqlError(`expected type instant vector in aggregation expression, got scalar`);
  const groups = new Map<string, { labels: Record<string, string>; values: number[] }>();
  for (const sample of inner.vector) {
    const labels: Record<string, string> = {};
    for (const label of by) {
      const value = sample.labels[label];
      if (value !== undefined) labels[label] = value;
    }
    const key = JSON.stringify(labels);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { labels, values: [sample.value] });
    else group.values.push(sample.value);
  }
  const fold = AGGREGATE[name] ?? ((): number => Number.NaN);
  return [...groups.values()].map(({ labels, values }) => ({ labels, value: fold(values), atMs }));
}

function combined(cloud: Cloud, { operator, left: one, right: other }: Of<'binary'>, atMs: number): Value {
  const operate = OPERATE[operator] ?? ((): number => Number.NaN);
  const left = evaluatePromql(cloud, one, atMs);
  const right = evaluatePromql(cloud, other, atMs);
  const each = (samples: readonly SimSample[], value: (of: number) => number): Value => ({
    vector: samples.map((s) => ({ labels: nameless(s.labels), value: value(s.value), atMs: s.atMs })),
  });
  if ('scalar' in left)
    return 'scalar' in right
      ? { scalar: operate(left.scalar, right.scalar) }
      : each(right.vector, (value) => operate(left.scalar, value));
  if ('scalar' in right) return each(left.vector, (value) => operate(value, right.scalar));
  const partners = new Map(right.vector.map((s) => [JSON.stringify(nameless(s.labels)), s.value]));
  const out: SimSample[] = [];
  for (const sample of left.vector) {
    const labels = nameless(sample.labels);
    const partner = partners.get(JSON.stringify(labels));
    if (partner !== undefined) out.push({ labels, value: operate(sample.value, partner), atMs });
  }
  return { vector: out };
}
