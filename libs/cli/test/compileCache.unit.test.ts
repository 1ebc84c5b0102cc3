import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** Starts the command with this cache directory, and says whether it kept what it compiled there. */
function keeps(mode: number, remove = false): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-cache-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  chmodSync(directory, mode);
  if (remove) rmSync(directory, { recursive: true });
  const { NODE_COMPILE_CACHE: _, ...inherited } = process.env;
  const env = { ...inherited, XDG_CACHE_HOME: directory };
  const { status, stdout } = spawnSync(process.execPath, [main, '--version'], { env, encoding: 'utf8' });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^kronos \d+\.\d+\.\d+\n$/);
  return existsSync(join(directory, 'kronos', 'compiled'));
}

it("what was compiled is kept in the user's own cache directory", () => expect(keeps(0o700)).toBe(true));

it('not in a directory that others may write to', () => expect(keeps(0o777)).toBe(false));

it('a cache directory that is not there is not made', () => expect(keeps(0o700, true)).toBe(false));
