import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EVERYONE } from './option.ts';
import { sections } from './options.ts';
import { resolveConfig } from './resolve.ts';
import { shownOptions } from './shown.ts';

const config = (text: string) =>
  resolveConfig({ file: 'kronos.conf', text, env: {}, role: 'cli', readFile: () => '' }).config;

describe('options that are shown', () => {
  it('are those that the reader reads, as they are in force', () => {
    const shown = shownOptions(config('[engine]\naggregates = gpu, general\ncooldown = 7\n'), 'planner');
    expect(shown).toMatchObject({ 'engine.cooldown': 7, 'engine.aggregates': ['gpu', 'general'] });
    expect(shown).not.toHaveProperty('executor.poll_interval');
  });
  it('leave out where a process listens and how it logs: replicas on one machine differ there', () => {
    for (const reader of EVERYONE)
      for (const name of Object.keys(shownOptions(config(''), reader)))
        expect(name).not.toMatch(/^(http|log|telemetry)\./);
  });
  it('show no secret and no credentials of a URL, whatever they are', () => {
    const word = fc.stringMatching(/^[A-Za-z0-9]{8,20}$/);
    fc.assert(
      fc.property(word, word, (secret, user) => {
        const hidden = [...sections].flatMap(([section, options]) => [
          `[${section}]`,
          ...[...options].flatMap(([name, { kind }]) => (kind === 'secret' ? [`${name} = ${secret}`] : [])),
        ]);
        const text = [
          ...hidden,
          '[nats]',
          `servers = nats://${user}:${secret}@nats:4222`,
          '[prometheus]',
          `url = https://${user}:${secret}@prometheus/path?token=${secret}`,
        ].join('\n');
        for (const reader of EVERYONE) {
          const shown = JSON.stringify(shownOptions(config(text), reader));
          expect(shown).not.toContain(secret);
          expect(shown).not.toContain(user);
        }
      }),
      { numRuns: 30 },
    );
  });
});
