import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { recordRange } from '@kronos/replay';
import { memoryHistory, operate } from '@kronos/replay/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const main = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));
/** More decisions than the thread of the command runs by itself. */
const op = operate({ seed: 21, cycles: 90, commands: 0.05 });
const decisions = op.events.filter(({ event }) => event.type === 'cycle.decided').length;
let root = '';

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-replay-'));
  const options = { range: {}, anonymize: false, madeBy: 'test', nowMs: 0 };
  await recordRange(memoryHistory(op.events, op.snapshots), join(root, 'case'), options);
});
afterAll(() => rm(root, { recursive: true }));

type Ended = { readonly code: number | null; readonly out: string; readonly err: string };

/** Runs the command as a process of its own. @param onOut called after each output, with the whole output so far */
function kronos(args: readonly string[], onOut: (out: string, stop: () => void) => void = () => {}): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args]);
  let out = '';
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    onOut(out, () => child.kill('SIGINT'));
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })));
}

describe('kronos replay as a process', () => {
  it.each([
    [['--json']],
    [['--set', 'engine.cooldown=0', '--json']],
    [['--set', 'engine.cooldown=0', '--moves', '--chart', 'CHART']],
  ])('prints the same bytes on any number of threads: %s', async (given) => {
    const args = given.map((arg) => arg.replace('CHART', join(root, 'chart.svg')));
    const one = await kronos(['replay', join(root, 'case'), ...args, '--threads', '1']);
    expect(one.code, one.err).toBe(0);
    expect(one.out.length).toBeGreaterThan(1000);
    const three = await kronos(['replay', join(root, 'case'), ...args, '--threads', '3']);
    expect(three).toEqual(one);
  });

  it.each([
    ['cycles', ['--threads', '2', '--json']],
    ['cycles', ['--threads', '2', '--what-if', '--json']],
    ['cycles', ['--threads', '1', '--json']],
  ])('ended by SIGINT prints the %s that were done, and exits: %s', async (list, args) => {
    let asked = false;
    const { code, out, err } = await kronos(['replay', join(root, 'case'), ...args], (_, stop) => {
      if (!asked) stop();
      asked = true;
    });
    const report = JSON.parse(out);
    expect([code, report.interrupted]).toEqual([130, true]);
    expect(report[list].length).toBeGreaterThan(0);
    expect(report[list].length).toBeLessThan(decisions);
    expect(err).toBe('kronos: interrupted: the output covers only the part that was done.\n');
  });

  it('says what --threads takes', async () => {
    const { code, err } = await kronos(['replay', join(root, 'case'), '--threads', 'none']);
    expect(code).toBe(2);
    expect(err).toContain('--threads takes a whole number of at least 1, not "none"');
  });
});
