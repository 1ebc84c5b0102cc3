import { globSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { attributes, metricSpecs, spans } from '@kronos/telemetry';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ALERTS_ELSEWHERE } from './alertsElsewhere.ts';

const deploy = new URL('../../deploy/', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, deploy), 'utf8');

type Rule = { alert: string; expr: string; labels: Record<string, string>; annotations: Record<string, string> };
const { groups } = parse(read('prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] };
const alerts = groups.flatMap(({ rules }) => rules);

describe('the table of names', () => {
  const cwd = fileURLToPath(new URL('../../', import.meta.url));
  const code = globSync(['libs/*/src/**/*.ts', 'services/*/src/**/*.ts'], { cwd })
    .filter((file) => !/\.test\.ts$|fixture|testing|telemetry\/src\/(names|doc)\.ts$/.test(file))
    .map((file) => readFileSync(`${cwd}${file}`, 'utf8'))
    .join('\n');
  const unset = (table: object, ...of: string[]) =>
    Object.keys(table).filter((key) => !of.some((name) => new RegExp(`\\b${name}\\.${key}\\b`).test(code)));

  it('holds no metric, span or attribute that nothing sets', () => {
    expect(unset(metricSpecs, 'metrics', 'instruments')).toEqual([]);
    expect(unset(spans, 'spans')).toEqual([]);
    expect(unset(attributes, 'attributes')).toEqual([]);
  });
});

/** The address of the documentation in alerts.yml: a placeholder. */
const DOCS = 'https://kronos.example.org/';

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
      expect(annotations.runbook_url, alert).toBe(`${DOCS}docs/runbook.md#${alert.toLowerCase()}`);
      expect(sections, `docs/runbook.md has no section ${alert}`).toContain(alert);
    }
    expect([...sections].filter((name) => !alerts.some(({ alert }) => alert === name))).toEqual([]);
  });

  /** The text of a section of the runbook, by the alert that it is for. */
  const sectionsOf = (page: string) =>
    new Map(
      [...page.matchAll(/^### (Kronos\w+)\n([\s\S]*?)(?=^##)/gm)].map(([, name = '', text = '']) => [name, text]),
    );
  /** Something to type or to set: a command, an option or a variable in `code`. documentation.unit checks that kronos has the command. */
  const ACTS =
    /`(kronos|openstack|nats|nova-manage|rabbitmqctl|systemctl|journalctl|kubectl|docker|curl|chronyc|df) [^`]+`/;

  it('each has a section of the runbook that names a command to run', () => {
    const without = (page: string) => {
      const sections = sectionsOf(page);
      return alerts.map(({ alert }) => alert).filter((alert) => !ACTS.test(sections.get(alert) ?? ''));
    };
    const page = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');
    expect(without(page)).toEqual([]);
    expect(without(page.replaceAll('`kronos ', '`'))).toContain('KronosPaused');
  });

  it('each is fired by a fault of faults.e2e, or a test elsewhere makes its fault', () => {
    const root = new URL('../../', import.meta.url);
    const faults = readFileSync(new URL('test/deploy/faults.e2e.test.ts', root), 'utf8');
    const fired = [...faults.matchAll(/\bfires\(([^)]*)\)/g)].flatMap(([, names = '']) =>
      [...names.matchAll(/'(\w+)'/g)].map(([, name = '']) => name),
    );
    const elsewhere = Object.keys(ALERTS_ELSEWHERE);
    expect([...new Set(fired), ...elsewhere].toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
    for (const [alert, [file, test]] of Object.entries(ALERTS_ELSEWHERE))
      expect(readFileSync(new URL(file, root), 'utf8'), `${file} has no test of ${alert}`).toContain(test);
  });

  it('each has a test that it fires and one that it stays quiet', () => {
    const { tests } = parse(read('prometheus/alerts.test.yml')) as { tests: { name: string }[] };
    // A further test of an alert says after these words what it is about.
    const names = tests.map(({ name }) => name).filter((name) => / (?:fires|stays quiet)$/.test(name));
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
