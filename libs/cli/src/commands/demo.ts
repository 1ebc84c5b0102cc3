import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { clause, type LogEvent, timeMs } from '@kronos/contracts';
import { freePorts } from '@kronos/eventlog/local';
import { createPrometheus, type Prometheus } from '@kronos/prometheus';
import { balanceText, demoTitle, draw, sceneMoveText } from '../demo/draw.ts';
import { picture } from '../demo/picture.ts';
import { balanced, emptyScene, onEvent, type Scene } from '../demo/scene.ts';
import { type DemoStage, openStage } from '../demo/stage.ts';
import { paint, type Terminal } from '../terminal.ts';
import { said } from '../times.ts';

/** A demo that is not balanced after this long has failed. It takes a minute; a busy machine takes several. */
const LIMIT_MS = 300_000;
/** After this number of quiet decisions in a row nothing more is done. */
const QUIET_CYCLES = 2;

export type DemoOptions = { readonly keep?: boolean; readonly seed: number; readonly speed: number };

/** In a checkout of the project the command is not on the PATH. */
function onPathOfCheckout(): string {
  const bin = fileURLToPath(new URL('../../../../node_modules/.bin', import.meta.url));
  return existsSync(join(bin, 'kronos')) ? ` PATH=${bin}:$PATH` : '';
}

/** Runs the demo on a terminal; the exit status. Its directory stays only where its logs explain a failure. */
export async function demo(terminal: Terminal, options: DemoOptions): Promise<number> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  try {
    return await onStage(terminal, options, stop.signal);
  } catch (error) {
    // Ctrl-C reaches every process of the demo, so anything may end before it is asked to.
    if (stop.signal.aborted) return 1;
    throw error;
  }
}

async function onStage(terminal: Terminal, options: DemoOptions, stop: AbortSignal): Promise<number> {
  const problems: string[] = [];
  const [scorer = 0, planner = 0, executor = 0, ledger = 0] = await freePorts(4);
  const stage = await openStage({
    ...options,
    ports: { scorer, planner, executor, ledger },
    say: (text) => terminal.out(`${text} ...\n`),
    onExit: (service, code) => problems.push(`the ${service} ended with status ${code}`),
  });
  const prometheus = createPrometheus({ url: stage.prometheusUrl, maxRetries: 1 });
  let code = 1;
  try {
    terminal.out(
      `\nconfiguration: ${stage.configFile} (a cycle every 3 s, short cooldowns; logs in ${stage.directory}/logs)\n`,
    );
    if (options.keep === true)
      terminal.out(
        `console: http://127.0.0.1:${ledger}/\nin another terminal: export KRONOS_CONFIG=${stage.configFile}${onPathOfCheckout()}\n                     kronos status\n`,
      );
    terminal.out('\n');
    code = await watch(terminal, options, stage, { prometheus, problems, stop });
    return code;
  } finally {
    await prometheus.close();
    await stage.close({ keepFiles: code !== 0 && !stop.aborted });
  }
}

type Watched = {
  readonly prometheus: Prometheus;
  /** Why the demo failed; empty while it did not. */
  readonly problems: readonly string[];
  readonly stop: AbortSignal;
};

async function watch(
  terminal: Terminal,
  options: DemoOptions,
  stage: DemoStage,
  { prometheus, problems, stop }: Watched,
): Promise<number> {
  const started = performance.now();
  const elapsed = () => performance.now() - started;
  let scene = await hosts(emptyScene(stage.thresholds), stage.cloudUrl);
  const screen = createScreen(terminal);
  let announced = false;

  const follow = async () => {
    for await (const delivered of stage.log.tail({ families: ['plans', 'results'], since: 'all' })) {
      if (delivered.problem !== undefined) continue;
      const event = delivered.message as LogEvent;
      const before = scene;
      scene = onEvent(scene, event);
      screen.event(before, scene, event);
    }
  };
  const following = follow();
  following.catch(() => {});

  while (!stop.aborted) {
    const measured = await measure(prometheus);
    scene = { ...scene, ...measured };
    screen.refresh(scene, elapsed());
    if (problems[0] !== undefined && !stop.aborted) {
      screen.finish();
      terminal.err(`\nThe demo failed: ${problems[0]}; see its log in ${stage.directory}/logs.\n`);
      return 1;
    }
    if (!announced && scene.moves.length > 0 && balanced(scene) && scene.quietCycles >= QUIET_CYCLES) {
      announced = true;
      screen.finish();
      summary(terminal, scene, elapsed());
      if (options.keep !== true) return 0;
      terminal.out('\nThe demo keeps running until Ctrl-C.\n');
    }
    if (!announced && options.keep !== true && elapsed() > LIMIT_MS) {
      screen.finish();
      terminal.err(`\nNot balanced after ${LIMIT_MS / 1000} s: ${balanceText(scene)}\n`);
      return 1;
    }
    await delay(500, undefined, { signal: stop }).catch(() => {});
  }
  screen.finish();
  return announced ? 0 : 1;
}

/** Which hosts may be destinations, and what to say beside the others. */
async function hosts(scene: Scene, cloudUrl: string): Promise<Scene> {
  const answer = await fetch(`${cloudUrl}/hosts`);
  const { hosts: list } = (await answer.json()) as { hosts: { name: string; disabled: boolean }[] };
  return {
    ...scene,
    destinations: new Set(list.filter((h) => !h.disabled).map((h) => h.name)),
    notes: new Map(list.filter((h) => h.disabled).map((h) => [h.name, 'disabled'])),
  };
}

/** Asks Prometheus what anyone could ask it; nothing when it does not answer. */
async function measure(prometheus: Prometheus): Promise<Partial<Scene>> {
  try {
    const timeMs = Date.now();
    const [cpu, memory, servers] = await Promise.all([
      prometheus.instant('host_cpu_utilisation', { timeMs }),
      prometheus.instant('host_mem_utilisation', { timeMs }),
      prometheus.instant('vm_cpu_cores', { timeMs }),
    ]);
    const byHost = (samples: typeof cpu.samples) => new Map(samples.map((s) => [s.labels.host ?? '', s.value]));
    const serversByHost = new Map<string, number>();
    for (const { labels } of servers.samples) {
      const host = labels.host ?? '';
      serversByHost.set(host, (serversByHost.get(host) ?? 0) + 1);
    }
    return {
      load: new Map([
        ['cpu', byHost(cpu.samples)],
        ['memory', byHost(memory.samples)],
      ]),
      serversByHost,
    };
  } catch {
    return {};
  }
}

function summary(terminal: Terminal, scene: Scene, elapsedMs: number): void {
  const moved = scene.moves.filter((m) => m.state === 'done').length;
  const failed = scene.moves.filter((m) => m.state === 'failed').length;
  terminal.out(
    `\n${paint(terminal, 'green', 'Balanced')} after ${(elapsedMs / 1000).toFixed(0)} s: ${moved} live migrations${failed > 0 ? `, ${failed} failed` : ''}.\n`,
  );
  terminal.out(`${balanceText(scene)}\n`);
  terminal.out(`No further moves: ${scene.lastDecision?.text ?? ''}\n`);
}

type Screen = {
  readonly refresh: (scene: Scene, elapsedMs: number) => void;
  readonly event: (before: Scene, after: Scene, event: LogEvent) => void;
  /** Leaves the last picture standing. */
  readonly finish: () => void;
};

const createScreen = (terminal: Terminal): Screen => (terminal.live ? liveScreen(terminal) : plainScreen(terminal));

function liveScreen(terminal: Terminal): Screen {
  const { show, finish } = picture(terminal);
  return {
    refresh: (scene, elapsedMs) => show(draw(scene, terminal, { title: demoTitle(scene, terminal, elapsedMs) })),
    event() {},
    finish,
  };
}

/** One line per thing that happened, and the whole picture at the start and at the end. */
function plainScreen(terminal: Terminal): Screen {
  let last: { scene: Scene; elapsedMs: number } | null = null;
  let drawn = false;
  const whole = () => {
    if (last !== null)
      terminal.out(
        `${draw(last.scene, terminal, { title: demoTitle(last.scene, terminal, last.elapsedMs) }).join('\n')}\n\n`,
      );
  };
  return {
    refresh(scene, elapsedMs) {
      last = { scene, elapsedMs };
      if (!drawn && [...scene.load.values()].every((m) => m.size > 0)) {
        drawn = true;
        whole();
      }
    },
    event(before, after, event) {
      if (event.type === 'cycle.decided') {
        // While nothing happens, each cycle decides the same.
        if (after.moves.length === before.moves.length && after.lastDecision?.text === before.lastDecision?.text)
          return;
        terminal.out(`decided: ${said(clause(event.data.reason.text), timeMs(event.data.snapshotTime))}\n`);
        if (after.moves.length > before.moves.length)
          for (const move of after.moves.slice(before.moves.length)) terminal.out(`  ${sceneMoveText(move)}\n`);
        if (event.data.outcome !== 'gated') terminal.out(`  ${balanceText(after)}\n`);
        return;
      }
      const changed = after.moves.find((m, i) => m !== before.moves[i]);
      if (changed !== undefined) terminal.out(`  ${sceneMoveText(changed)}\n`);
    },
    finish: whole,
  };
}
