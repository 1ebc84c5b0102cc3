import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sections } from './options.ts';
import { parsePolicies } from './policies.ts';
import { defaultConfig, resolveConfig } from './resolve.ts';
import { configSample, configurationDoc, configurationFiles, policiesSample } from './sample.ts';

const resolve = (text: string) =>
  resolveConfig({ file: 'kronos.conf', text, env: {}, role: 'cli', readFile: () => '' });

describe('the sample of kronos.conf', () => {
  it('sets nothing', () => {
    const { problems, sources } = resolve(configSample());
    expect(problems.map((p) => p.option)).toEqual(['[engine] aggregates']);
    expect(sources.size).toBe(0);
  });

  it('with every option uncommented changes nothing', () => {
    const text = configSample().replaceAll(/^#([a-z0-9_]+ =)/gm, '$1');
    const { config, problems, sources } = resolve(text);
    expect(problems.map((p) => p.option)).toEqual(['[engine] aggregates']);
    expect(sources.size).toBe([...sections.values()].reduce((n, known) => n + known.size, 0));
    expect({ ...config, telemetry: null }).toEqual({ ...defaultConfig, telemetry: null });
  });
});

describe('the sample of policies.yaml', () => {
  it('is valid', () => {
    expect(parsePolicies({ file: 'p', text: policiesSample() }).problems).toEqual([]);
  });
});

describe('the documentation', () => {
  it('names every option', () => {
    const doc = configurationDoc();
    for (const [section, known] of sections) {
      expect(doc).toContain(`## [${section}]`);
      for (const name of known.keys()) expect(doc).toContain(`| \`${name}\` |`);
    }
  });

  it.each([...configurationFiles()])('%s is what the code says (npm run generate makes it)', (path, text) => {
    expect(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')).toBe(text);
  });
});
