import { describe, expect, it } from 'vitest';
import { runbookReader, sectionsOf } from './runbook.ts';

describe('the runbook', () => {
  it('is given section by section, each with its whole code', () => {
    const read = runbookReader();
    expect(read('nats-refused')).toMatch(/^### nats-refused\n/);
    expect(read('nats-refused')).not.toContain('not-provisioned');
    expect(read('none')).toBeNull();
  });

  it('ends a section with the next heading of any level', () => {
    const sections = sectionsOf('# A\n\n### Bee\n\ntext\n\n## C\n\nother\n');
    expect([...sections]).toEqual([['bee', '### Bee\n\ntext']]);
  });

  it('is empty where none is installed', () => {
    expect(runbookReader(new URL('file:///nowhere/runbook.md'))('nats-refused')).toBeNull();
  });
});
