import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Order, Report, StartOrder } from './process.ts';

const ENTRY = fileURLToPath(new URL('process.ts', import.meta.url));

/** One executor process. After `stop` it can be started again for another test. */
export class ExecutorProcess {
  readonly #child: ChildProcess;
  readonly #reports: Report[] = [];
  /** Number of its starts. Commands and reports of an earlier use are void. */
  #use = 0;
  readonly #wake = new Set<() => void>();
  #text = '';
  /** It was told to end. Its later reports do not count. */
  #ending = false;
  /** Standard output and error, for the report of a failed test. */
  output = '';

  constructor() {
    this.#child = spawn(process.execPath, [ENTRY], {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    });
    const collect = (chunk: Buffer): void => {
      this.output += chunk.toString();
    };
    this.#child.stdout?.on('data', collect);
    this.#child.stderr?.on('data', collect);
    this.#child.stdin?.on('error', () => undefined);
    (this.#child.stdio[4] as Writable).on('error', () => undefined);
    (this.#child.stdio[3] as Readable).on('data', (chunk: Buffer) => {
      this.#text += chunk.toString();
      for (let end = this.#text.indexOf('\n'); end >= 0; end = this.#text.indexOf('\n')) {
        this.#reports.push(JSON.parse(this.#text.slice(0, end)) as Report);
        this.#text = this.#text.slice(end + 1);
      }
      this.#wakeAll();
    });
    this.#child.once('exit', () => this.#wakeAll());
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  #wakeAll(): void {
    for (const wake of [...this.#wake]) wake();
  }

  /** Waits for a report; null when the process has ended, has another use now, or did not report in time. */
  async report(is: Report['is'], withinMs: number): Promise<Report | null> {
    const until = performance.now() + withinMs;
    const use = this.#use;
    for (;;) {
      if (this.#use !== use) return null;
      const at = this.#reports.findIndex((each) => each.is === is);
      if (at >= 0) return this.#reports.splice(at, 1)[0] ?? null;
      const left = until - performance.now();
      if (!this.alive || left <= 0) return null;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          this.#wake.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, left);
        this.#wake.add(wake);
      });
    }
  }

  #order(order: Order): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  start(order: Omit<StartOrder, 'use'>): void {
    this.output = '';
    this.#reports.length = 0;
    this.#use += 1;
    this.#wakeAll();
    this.#order({ ...order, use: this.#use % 256 });
  }

  /** Lets it continue from the point, now or when it gets there: the byte stays in the pipe. */
  go(): void {
    (this.#child.stdio[4] as Writable).write(Buffer.of(this.#use % 256));
  }

  signal(signal: NodeJS.Signals): void {
    if (signal === 'SIGTERM') this.#ending = true;
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    if (!this.alive) return;
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGCONT');
    this.#child.kill('SIGKILL');
    await gone;
  }

  /** Stops the executor in this process. Returns false if it does not stop: then the process cannot run another one. */
  async reusable(): Promise<boolean> {
    if (!this.alive || this.#ending) return false;
    this.#order({ do: 'stop' });
    return (await this.report('stopped', 5000)) !== null;
  }
}

/** Processes that wait for work. A spare one replaces a killed one. */
export class Fleet {
  readonly #idle: ExecutorProcess[] = [];
  readonly #all = new Set<ExecutorProcess>();
  readonly #spare: number;

  constructor(spare: number) {
    this.#spare = spare;
    this.#fill();
  }

  #fill(): void {
    while (this.#idle.length < this.#spare) this.#idle.push(this.#make());
  }

  #make(): ExecutorProcess {
    const made = new ExecutorProcess();
    this.#all.add(made);
    return made;
  }

  take(): ExecutorProcess {
    const taken = this.#idle.shift() ?? this.#make();
    this.#fill();
    return taken;
  }

  /** Takes a process back. The next test uses it if it still obeys. */
  async giveBack(process: ExecutorProcess): Promise<void> {
    if (await process.reusable()) {
      this.#idle.push(process);
      return;
    }
    await process.kill();
    this.#all.delete(process);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((process) => process.kill()));
    this.#all.clear();
  }
}
