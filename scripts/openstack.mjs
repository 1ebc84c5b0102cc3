// Starts the cloud of test/openstack/bed for the tests, and ends it, also after Ctrl-C.
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';

// Every night servers are moved to another cell, whose hosts fill up. No other test needs one.
const env = { BED_CELL2_COMPUTES: process.env.KRONOS_NIGHTLY === '1' ? '2' : '0', ...process.env };

/**
 * Resolves with `end`, which ends the cloud if this started it, or with the reason why there is none, in one line.
 *
 * @param {string} root of the checkout
 * @returns {Promise<string | { end(): Promise<void> }>}
 */
export async function startCloud(root) {
  const bed = join(root, 'test', 'openstack', 'bed');
  if (process.platform !== 'linux') return 'they need Debian or Ubuntu';
  if (spawnSync(bed, ['status'], { stdio: 'ignore', env }).status === 0) return { end: async () => undefined };
  if (process.getuid?.() !== 0) return 'they start a cloud, which needs root: run them with sudo';
  if (spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status !== 0)
    return 'they install a cloud with apt-get, which this machine does not have';
  console.error('kronos: starting OpenStack (the first time, its installation takes about five minutes) ...');
  const up = await tell(bed, 'up');
  const end = async () => {
    console.error('kronos: ending OpenStack ...');
    await tell(bed, 'down');
  };
  if (up.stopped) {
    await end();
    process.exit(130);
  }
  if (up.code !== 0) return `the cloud did not start (${bed} up); the last lines above say why`;
  return { end };
}

/** Runs a command of the bed. SIGINT and SIGTERM end it. */
function tell(bed, word) {
  return new Promise((resolve) => {
    // In a process group of its own: Ctrl-C at a terminal must not reach what ends the cloud.
    const child = spawn(bed, [word], { stdio: ['ignore', 2, 2], env, detached: true });
    let stopped = false;
    const stop = () => {
      stopped = true;
      if (word === 'up') process.kill(-child.pid, 'SIGTERM');
    };
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, stop);
    const done = (code) => {
      for (const signal of signals) process.off(signal, stop);
      resolve({ code, stopped });
    };
    child.on('error', () => done(1));
    child.on('exit', (code) => done(code ?? 1));
  });
}
