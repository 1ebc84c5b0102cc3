// A test run must not leave behind processes that it started or directories that it made.
//
// Everything that the run starts inherits KRONOS_RUN (a random id) and TMPDIR (a directory of the run alone), so both can be
// found afterwards, whatever ended the run. NODE_COMPILE_CACHE names one directory for what Node compiles, which the processes
// of all runs share: starting a service then takes half the CPU, and npm makes no directory of its own for it.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Time for a process to end after it was told to, also on a machine that is busy with other work. */
const GRACE_MS = 60_000;

/** Environment of a run, and the check for after it. */
export function watchRun(env) {
  const id = randomUUID();
  const directory = mkdtempSync(join(tmpdir(), 'kronos-run-'));
  const cache = env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return {
    env: { ...env, KRONOS_RUN: id, TMPDIR: directory, NODE_COMPILE_CACHE: join(cache, 'kronos', 'tests-compiled') },
    /** Ends and removes what is left. Returns one line for each process and directory; empty: the run left nothing. */
    async leftovers() {
      const processes = await ended(id);
      for (const { pid } of processes) kill(pid);
      const entries = readdirSync(directory).map((entry) => `directory ${join(directory, entry)}`);
      rmSync(directory, { recursive: true, force: true });
      return [...processes.map(({ pid, command }) => `process ${pid}: ${command}`), ...entries];
    },
  };
}

/** Processes of the run that are still there after the grace time. Linux only: elsewhere there is no /proc to ask. */
async function ended(id) {
  const until = Date.now() + GRACE_MS;
  for (;;) {
    const alive = processesOf(id);
    if (alive.length === 0 || Date.now() > until) return alive;
    await delay(100);
  }
}

function processesOf(id) {
  const found = [];
  for (const pid of pids()) {
    if (Number(pid) === process.pid) continue;
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`KRONOS_RUN=${id}\0`)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
      // A zombie has no command line: it has ended and waits for its parent.
      if (command !== '') found.push({ pid: Number(pid), command });
    } catch {
      // It ended while it was looked at, or it is another user's.
    }
  }
  return found;
}

function pids() {
  try {
    return readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  } catch {
    return [];
  }
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
