import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const usage = new URL('./usage.ts', import.meta.url).href;
const main = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));

/** A command that ended, with what its process used, its threads included. */
export type Measured = {
  readonly status: number | null;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
  readonly out: string;
};

/**
 * Runs `kronos` and measures its process.
 *
 * @param file where the process leaves what it used.
 */
export async function measuredKronos(args: readonly string[], file: string): Promise<Measured> {
  const began = performance.now();
  const child = spawn(process.execPath, ['--import', usage, main, ...args], {
    env: { ...process.env, KRONOS_BENCH_USAGE: file },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const seconds = (performance.now() - began) / 1000;
  const { cpuMs, peakMb } = JSON.parse(readFileSync(file, 'utf8'));
  return { status, seconds, cpuSeconds: cpuMs / 1000, peakMb, out };
}
