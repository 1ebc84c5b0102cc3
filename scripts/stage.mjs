/** The stages of a CI run: a check, tests that are counted one by one, or cells of the fault matrix, each with its output in a file. */
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

export const out = mkdtempSync(join(tmpdir(), 'kronos-ci-'));

export const MINUTE = 60_000;

/** Begins the last line of a stage's output: the user and system time of all its processes that were waited for, in seconds. */
const CPU_LINE = 'ci: CPU';

/**
 * Runs a command with its output in a file: a pipe would be held open by what a killed command started, and stages that run
 * side by side must not mix their lines. The command leads a process group, so that its time limit ends everything it started.
 * `nice`: 0, or how far it stands behind others when the machine is busy, up to 19. Where Linux shares the CPU among sessions
 * (autogroups) and not among processes, the session has to stand behind.
 */
function run(name, [command, ...args], minutes, nice) {
  const path = join(out, `${name.replaceAll(' ', '-')}.log`);
  const file = openSync(path, 'w');
  return new Promise((resolve) => {
    const stand = `{ echo ${nice} > /proc/self/autogroup; } 2>/dev/null || true`;
    const timed = ['bash', '-c', `${stand}; TIMEFORMAT='${CPU_LINE} %U %S'; time "$@"`, name, command, ...args];
    const child = spawn('nice', ['-n', String(nice), ...timed], {
      cwd: root,
      stdio: ['ignore', file, file],
      detached: true,
    });
    const limit = setTimeout(() => {
      console.error(`ci: ${name} was not over after ${minutes} minutes and is killed`);
      process.kill(-child.pid, 'SIGKILL');
    }, minutes * MINUTE);
    const end = (ok) => {
      clearTimeout(limit);
      closeSync(file);
      const [output, cpu = ''] = readFileSync(path, 'utf8').split(`${CPU_LINE} `);
      const cpuSeconds = cpu.split(' ').reduce((sum, part) => sum + Number(part), 0);
      resolve({ ok, output: output.trimEnd(), cpuSeconds });
    };
    child.on('error', (error) => {
      console.error(`ci: ${name}: ${error.message}`);
      end(false);
    });
    child.on('exit', (code) => end(code === 0));
  });
}

export const script = (...args) => [process.execPath, 'scripts/run.mjs', ...args];

export const check = (name, command, minutes = 10) => ({
  name,
  run: async (nice) => ({ passed: 0, failed: 0, ...(await run(name, command, minutes, nice)) }),
});

/** Lines of a message that say why: a call that timed out names what it waited for in its call log. */
const WHY_LINES = 5;

/** One line for each test or file that failed: where, why, and the line of the test that says so. */
function failuresOf(files) {
  const line = (where, why = '', file = '') => {
    const lines = stripVTControlCharacters(why)
      .split('\n')
      .map((one) => one.trim())
      .filter((one) => one !== '');
    const stack = lines.findIndex((one) => one.startsWith('at '));
    const message = stack < 0 ? lines : lines.slice(0, stack);
    const own = lines.find((one) => file !== '' && one.startsWith('at ') && one.includes(file));
    return [`${where}:`, message.slice(0, WHY_LINES).join(' · ').slice(0, 1000), own ?? ''].join(' ').trim();
  };
  return files.flatMap(({ name, message, assertionResults }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    if (failed.length === 0) return message ? [line(file, message)] : [];
    return failed.map(({ fullName, failureMessages }) => line(`${file} > ${fullName}`, failureMessages[0], file));
  });
}

export const tests = (name, [task, ...args], minutes, env = {}) => ({
  name,
  run: async (nice) => {
    const report = join(out, `${name}.json`);
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const set = Object.entries(env).map(([key, value]) => `${key}=${value}`);
    const command = ['env', ...set, ...script(task, ...args, ...reporters)];
    const { ok, output, cpuSeconds } = await run(name, command, minutes, nice);
    try {
      const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
      const failures = failuresOf(testResults);
      if (numPassedTests + numFailedTests === 0) {
        // A run that skips all of its tests proves nothing.
        const why = `ci: ${name} ran no test`;
        return { passed: 0, failed: 0, ok: false, output: `${output}\n${why}`, cpuSeconds, failures };
      }
      return { passed: numPassedTests, failed: numFailedTests, ok, output, cpuSeconds, failures };
    } catch (error) {
      const why = `ci: ${name} left no report: ${error.message}`;
      return { passed: 0, failed: 0, ok: false, output: `${output}\n${why}`, cpuSeconds };
    }
  },
});

/** The fault matrix counts cells and reports them in its last line. */
export const cells = (name, args, minutes) => ({
  name,
  run: async (nice) => {
    const { ok, output, cpuSeconds } = await run(name, script('trial', 'test/faults/run.ts', ...args), minutes, nice);
    try {
      const { cells, failed } = JSON.parse(output.split('\n').at(-1));
      const failures = output.split('\n').filter((line) => line.includes(': BROKEN: '));
      return { passed: cells - failed, failed, ok, output, cpuSeconds, failures };
    } catch {
      return { passed: 0, failed: 0, ok: false, output: `${output}\nci: ${name} did not reach its end`, cpuSeconds };
    }
  },
});
