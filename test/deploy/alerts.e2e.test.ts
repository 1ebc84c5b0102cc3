import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { it } from 'vitest';
import { findPrometheus } from './prometheus.ts';

it('the alerts fire when they should and stay quiet when they should', async (context) => {
  const promtool = await findPrometheus('promtool');
  if (promtool === null) return context.skip('there is no promtool, and its package cannot be downloaded');
  const cwd = fileURLToPath(new URL('../../deploy/prometheus', import.meta.url));
  await promisify(execFile)(promtool, ['test', 'rules', 'alerts.test.yml'], { cwd });
});
