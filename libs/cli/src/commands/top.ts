import { setTimeout as delay } from 'node:timers/promises';
import { count, type Snapshot, timeMs } from '@kronos/contracts';
import { serviceText } from '@kronos/facts';
import { isCounted, score } from '@kronos/placement';
import { newestSnapshots } from '@kronos/replay';
import { type AggregateStatus, ratioText, statusOf } from '@kronos/status';
import { draw } from '../demo/draw.ts';
import { picture } from '../demo/picture.ts';
import type { Scene, SceneMove } from '../demo/scene.ts';
import type { AggregateOption, ConfigOption } from '../grammar/shared.ts';
import { type OpenLog, withSession } from '../open.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { readFacts } from '../status/facts.ts';
import { cutToWidth, paint, type Terminal } from '../terminal.ts';
import { said, when } from '../times.ts';

export type TopOptions = ConfigOption & AggregateOption & { readonly interval: number; readonly once?: boolean };

/** Lines of the screen where the terminal does not say how many it has. */
const ROWS = 40;
/** Lines of an aggregate beside its hosts and moves: its head, the imbalances, the decision, two blanks, one for hosts left out. */
const OTHER_LINES = 6;
/** Fewer hosts of an aggregate show nothing. */
const LEAST_HOSTS = 3;

/** kronos top: the hosts by value and the moves in flight, drawn again until Ctrl-C. */
export async function top(shell: Shell, options: TopOptions): Promise<void> {
  const { terminal } = shell;
  await withSession(shell, options, async (session) => {
    const wanted = filterAggregates(session.scope, options.aggregate);
    if (options.once === true || !terminal.live) {
      terminal.out(`${(await screen(shell, session, wanted)).join('\n')}\n`);
      return;
    }
    const stop = shell.interrupted();
    const drawn = picture(terminal);
    while (!stop.aborted) {
      drawn.show(await screen(shell, session, wanted));
      await delay(options.interval * 1000, undefined, { signal: stop }).catch(() => undefined);
    }
  });
}

/** The lines of every aggregate, the one that is farthest above its threshold first. */
async function screen(shell: Shell, session: OpenLog, wanted: readonly string[]): Promise<string[]> {
  const { terminal } = shell;
  const { aggregates } = statusOf(await readFacts(shell, session));
  const shown = aggregates
    .filter(({ aggregate }) => wanted.includes(aggregate))
    .toSorted((a, b) => (b.ratio ?? -1) - (a.ratio ?? -1));
  const snapshots = new Map((await newestSnapshots(session.log, wanted)).map((one) => [one.aggregate, one]));
  const room = Math.floor((terminal.rows ?? ROWS) / Math.max(1, shown.length)) - OTHER_LINES;
  return shown.flatMap((status) => {
    const snapshot = snapshots.get(status.aggregate);
    const moves = status.moves.slice(0, Math.max(1, Math.floor(room / 3)));
    const most = Math.max(LEAST_HOSTS, room - moves.length);
    return snapshot === undefined
      ? [head(shell, status), 'no snapshot yet: kronos status', '']
      : [...aggregateLines(terminal, head(shell, status, snapshot), sceneOf(snapshot, moves), most), ''];
  });
}

function head({ terminal, now }: Shell, { aggregate, ratio, doing }: AggregateStatus, snapshot?: Snapshot): string {
  const seen = snapshot === undefined ? '' : `   seen ${when(timeMs(snapshot.time), now())}`;
  const name = paint(terminal, 'bold', aggregate);
  const times = paint(terminal, (ratio ?? 0) > 1 ? 'yellow' : 'green', ratioText(ratio));
  return `${name}  ${times}  ${cutToWidth(`${said(doing, now())}${seen}`, Math.max(20, terminal.columns - aggregate.length - 10))}`;
}

function aggregateLines(terminal: Terminal, title: string, scene: Scene, most: number): string[] {
  if (scene.thresholds.size === 0) return [title, 'no policy has values: kronos status'];
  const left = scene.serversByHost.size - most;
  const lines = draw(scene, terminal, { title, most });
  return left > 0 ? [...lines, paint(terminal, 'dim', `${count(left, 'more host')}: kronos hosts`)] : lines;
}

/** The picture of the demo, of what the newest snapshot has and the log says. Pure. */
export function sceneOf(snapshot: Snapshot, moves: AggregateStatus['moves']): Scene {
  const { hosts, servers } = snapshot;
  const scores = score({ ...snapshot, options: { balance: true } });
  const policies = scores.policies.filter(({ participates }) => participates);
  const residents = Map.groupBy(servers, ({ host }) => host);
  return {
    load: new Map(
      policies.map(({ policy, hosts: of }) => [
        policy,
        new Map(Object.entries(of).map(([host, { raw }]) => [host, raw])),
      ]),
    ),
    thresholds: new Map(policies.map(({ policy, threshold }) => [policy, threshold])),
    destinations: new Set(hosts.filter(isCounted).map(({ name }) => name)),
    notes: new Map(hosts.filter((host) => !isCounted(host)).map(({ name, service }) => [name, serviceText(service)])),
    serversByHost: new Map(hosts.map(({ name }) => [name, residents.get(name)?.length ?? 0])),
    moves: moves.map(
      ({ taskId, vm, from, to, state, note }): SceneMove => ({ taskId, server: vm, from, to, state, text: note }),
    ),
    cycles: 0,
    lastDecision: null,
    quietCycles: 0,
  };
}
