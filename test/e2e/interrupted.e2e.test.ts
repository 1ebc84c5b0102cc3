import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const main = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));

describe('kronos demo, interrupted', () => {
  let temporary = '';
  beforeEach(async () => {
    temporary = await mkdtemp(join(tmpdir(), 'kronos-interrupted-'));
  });
  afterEach(() => rm(temporary, { recursive: true, force: true }));

  it.each([
    ['while it starts', /starting nats-server/],
    ['while it runs', /configuration: [\s\S]*decided/],
  ])('%s: leaves no directory and reports no failure', async (_, when) => {
    // As Ctrl-C does at a terminal, the signal reaches every process of the group.
    const child = spawn(process.execPath, [main, 'demo'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: temporary },
    });
    let text = '';
    let interrupted = false;
    const take = (chunk: Buffer): void => {
      text += chunk.toString();
      if (interrupted || !when.test(text)) return;
      interrupted = true;
      process.kill(-(child.pid ?? 0), 'SIGINT');
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const status = await new Promise((resolve) => child.once('close', resolve));
    expect(interrupted, text).toBe(true);
    expect(status, text).toBe(1);
    expect(text).not.toMatch(/fail|error/i);
    expect((await readdir(temporary)).filter((name) => name.startsWith('kronos-'))).toEqual([]);
  });
});
