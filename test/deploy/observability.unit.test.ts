import { readdirSync, readFileSync } from 'node:fs';
import { metricSpecs } from '@kronos/telemetry';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const deploy = new URL('../../deploy/', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, deploy), 'utf8');

type Rule = { alert: string; expr: string; labels: Record<string, string>; annotations: Record<string, string> };
const { groups } = parse(read('prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] };
const alerts = groups.flatMap(({ rules }) => rules);

describe('alerts', () => {
  it('ask for metrics that the services give', () => {
    const known = new Set<string>(Object.values(metricSpecs).map((spec) => spec.name));
    const used = alerts.flatMap(({ expr }) => expr.match(/\bkronos_[a-z_]+/g) ?? []);
    expect(used.filter((name) => !known.has(name))).toEqual([]);
  });

  it('each has a severity, and a section of the runbook', () => {
    const runbook = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');
    const sections = new Set([...runbook.matchAll(/^### (\w+)$/gm)].map(([, name]) => name));
    for (const { alert, labels, annotations } of alerts) {
      expect(['critical', 'warning', 'info'], alert).toContain(labels.severity);
      expect(annotations.runbook, alert).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
      expect(sections, `docs/runbook.md has no section ${alert}`).toContain(alert);
    }
    expect([...sections].filter((name) => !alerts.some(({ alert }) => alert === name))).toEqual([]);
  });

  it('each has a test that it fires and one that it stays quiet', () => {
    const { tests } = parse(read('prometheus/alerts.test.yml')) as { tests: { name: string }[] };
    const names = tests.map(({ name }) => name);
    expect(names).toEqual(alerts.flatMap(({ alert }) => [`${alert} fires`, `${alert} stays quiet`]));
  });
});

describe('dashboards', () => {
  it('are what deploy/grafana/dashboards.mjs makes', async () => {
    const { dashboards } = (await import(new URL('grafana/dashboards.mjs', deploy).href)) as {
      dashboards: () => Map<string, string>;
    };
    const made = dashboards();
    expect(readdirSync(new URL('grafana/dashboards/', deploy)).toSorted()).toEqual([...made.keys()].toSorted());
    for (const [name, text] of made) expect(read(`grafana/dashboards/${name}`), name).toBe(text);
  });
});
