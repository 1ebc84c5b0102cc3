import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const kronos = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));

/** How a command ended, and everything that it wrote. */
export type Outcome = { readonly status: number | null; readonly text: string };

/** Runs the `kronos` command as a person would, with nothing on standard input. */
export const runKronos = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [kronos, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    child.stderr.on('data', (chunk) => (text += chunk));
    child.on('close', (status) => resolve({ status, text }));
  });
