/** A real Prometheus that reads a store which is gone says so in each kind of answer: `libs/observation` then counts none as whole. */
import { createPrometheus } from '@kronos/prometheus';
import { describe, expect, it } from 'vitest';
import { findPrometheus, startPrometheus } from './prometheus.ts';

const program = await findPrometheus('prometheus');
if (program === null) console.warn('skipped: there is no prometheus, and its package cannot be downloaded');

describe.skipIf(program === null)('Prometheus with a remote store', () => {
  it('warns in each kind of answer when the store is gone', async () => {
    // Nobody listens on port 9 (discard).
    const { url, stop } = await startPrometheus(program ?? '', [], [], { remoteRead: 'http://127.0.0.1:9/read' });
    const prometheus = createPrometheus({ url });
    try {
      const now = Date.now();
      const range = { startMs: now - 60_000, endMs: now, stepMs: 15_000 };
      expect((await prometheus.instant('up', { timeMs: now })).warnings.join()).toContain('remote_read');
      expect((await prometheus.range('up', range)).warnings.join()).toContain('remote_read');
      expect((await prometheus.instant('timestamp(up)', { timeMs: now })).warnings.join()).toContain('remote_read');
    } finally {
      await prometheus.close();
      await stop();
    }
  });
});
