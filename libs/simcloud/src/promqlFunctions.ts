/** The functions and operators of PromQL that the simulated Prometheus knows. */

export const OVER_TIME: Readonly<Record<string, (values: readonly number[]) => number>> = {
  avg_over_time: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  max_over_time: (values) => Math.max(...values),
  min_over_time: (values) => Math.min(...values),
  sum_over_time: (values) => values.reduce((sum, value) => sum + value, 0),
  count_over_time: (values) => values.length,
  last_over_time: (values) => values.at(-1) ?? Number.NaN,
};
export const AGGREGATE: Readonly<Record<string, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  avg: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
  count: (values) => values.length,
};
export const OPERATE: Readonly<Record<string, (a: number, b: number) => number>> = {
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
};
