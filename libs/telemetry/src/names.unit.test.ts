import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { telemetryDoc } from './doc.ts';
import { attributes, type MetricSpec, metricSpecs, spans } from './names.ts';

const specs = Object.entries<MetricSpec>(metricSpecs);

describe('the names of telemetry', () => {
  it.each(specs)(
    'metric %s follows the conventions of Prometheus',
    (_, { kind, name, unit, help, labels, buckets }) => {
      expect(name).toMatch(/^kronos_[a-z]+(_[a-z]+)*$/);
      expect(name.endsWith('_total')).toBe(kind === 'counter');
      const base = name.replace(/_total$/, '');
      expect(base.endsWith('_seconds')).toBe(unit === 's');
      expect(base.endsWith('_bytes')).toBe(unit === 'By');
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
      expect(buckets !== undefined).toBe(kind === 'histogram');
      expect(buckets ?? []).toEqual([...(buckets ?? [])].sort((a, b) => a - b));
      for (const label of Object.keys(labels)) expect(label).toMatch(/^[a-z]+(_[a-z]+)*$/);
    },
  );

  it('no metric has a label that grows with servers, plans or tasks; only gauges whose series end may name hosts', () => {
    const forbidden = ['server', 'plan', 'task', 'snapshot', 'migration'];
    for (const [, { kind, labels }] of specs)
      for (const label of Object.keys(labels))
        expect(kind === 'gauges' ? forbidden : [...forbidden, 'host']).not.toContain(label);
  });

  it('every name is there once', () => {
    for (const names of [specs.map(([, s]) => s.name), Object.values(spans), Object.values(attributes)])
      expect(new Set(names).size).toBe(names.length);
  });

  it('docs/telemetry.md is what the code says (npm run generate makes it)', () => {
    expect(readFileSync(new URL('../../../docs/telemetry.md', import.meta.url), 'utf8')).toBe(telemetryDoc());
  });
});
