import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kronos as kronosHere } from '../../libs/cli/test/world.ts';

/** The checkout of this file. */
export const here = fileURLToPath(new URL('../../', import.meta.url));

/** The exit status of a command, and everything that it wrote. */
export type Outcome = { readonly status: number | null; readonly text: string };

/**
 * Runs the `kronos` command as a process, as a person would, with nothing on standard input.
 *
 * @param root of the checkout whose command it is; default: this one
 */
export const runKronos = (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  root = here,
): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [join(root, 'libs/cli/src/main.ts'), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    child.stderr.on('data', (chunk) => (text += chunk));
    child.on('close', (status) => resolve({ status, text }));
  });

/** Runs it in this process, one at a time: the start of a process takes most of a second of CPU. Not for services. */
export async function runHere(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const all = { ...(process.env as Record<string, string>), ...env };
  const { status, out, err } = await kronosHere(args, { env: all, nowMs: Date.now, columns: 80 });
  return { status, text: out + err };
}
