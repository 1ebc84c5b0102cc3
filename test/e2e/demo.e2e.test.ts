import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const launcher = fileURLToPath(new URL('../../libs/cli/bin/kronos.js', import.meta.url));

it('kronos demo, without a terminal: shows the load, the moves and why nothing more is done, and ends with 0', async () => {
  const child = spawn(process.execPath, [launcher, 'demo'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  const status = await new Promise((resolve) => child.once('close', resolve));
  expect(status, text.slice(-2000)).toBe(0);
  expect(text).toMatch(/compute-01 +cpu #+\.* +\d+% +memory #+\.* +\d+% +\d+ VMs/);
  expect(text).toMatch(/ -> compute-\d+ +moved/);
  expect(text).toMatch(/Balanced after \d+ s: \d+ live migrations(, \d+ failed)?\./);
  expect(text).toContain('No further moves: no policy detects an imbalance');
  expect(text).not.toContain('\u001b');
});
