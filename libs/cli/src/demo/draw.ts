import { cutMiddle, cutToWidth, paint, type Terminal } from '../terminal.ts';
import { imbalance, type Scene, type SceneMove } from './scene.ts';

const MOVES_SHOWN = 8;
/** A shorter bar shows nothing. */
const LEAST_BAR = 3;

/** The head of the picture, and how many hosts it has at most: then those with the highest values come first. */
export type DrawOptions = { readonly title: string; readonly most?: number };

/** The scene as lines: load per host and policy as bars, the imbalance against its threshold, the latest moves. */
export function draw(scene: Scene, terminal: Terminal, { title, most }: DrawOptions): string[] {
  const policies = [...scene.thresholds.keys()];
  const all = [...new Set([...scene.load.values()].flatMap((m) => [...m.keys()]))];
  const hosts =
    most === undefined ? all.sort(byName) : all.sort((a, b) => worst(scene, b) - worst(scene, a)).slice(0, most);
  const longest = Math.max(4, ...hosts.map((h) => h.length));
  const nameWidth = terminal.live ? Math.min(longest, Math.max(12, Math.floor(terminal.columns / 4))) : longest;
  const barWidth = Math.max(
    LEAST_BAR,
    Math.min(24, Math.floor((terminal.columns - nameWidth - 24) / Math.max(1, policies.length)) - 8),
  );
  return [
    title,
    ...hosts.map((host) => hostLine(scene, terminal, host, { policies, nameWidth, barWidth })),
    ...(most === undefined ? [''] : []),
    ...policies.map((policy) => imbalanceLine(scene, terminal, policy)),
    ...(most !== undefined
      ? []
      : [
          scene.lastDecision === null
            ? 'no decision yet'
            : cutToWidth(`decided: ${scene.lastDecision.text}`, terminal.columns),
          '',
        ]),
    ...latest(scene.moves).map((move) => cutToWidth(sceneMoveText(move), terminal.columns)),
  ];
}

/** The head of the demo's picture. */
export function demoTitle(scene: Scene, terminal: Terminal, elapsedMs: number): string {
  const done = scene.moves.filter((m) => m.state === 'done').length;
  const title = paint(terminal, 'bold', `Kronos demo  ${(elapsedMs / 1000).toFixed(0)} s`);
  return `${title}   cycle ${scene.cycles}   ${done} of ${wanted(scene)} moves done`;
}

/** The highest value of a host as a multiple of the threshold of its policy. */
const worst = (scene: Scene, host: string): number =>
  Math.max(
    0,
    ...[...scene.thresholds].map(
      ([policy, threshold]) => (scene.load.get(policy)?.get(host) ?? 0) / Math.max(threshold, 1e-9),
    ),
  );

type Layout = { readonly policies: readonly string[]; readonly nameWidth: number; readonly barWidth: number };

function hostLine(scene: Scene, terminal: Terminal, host: string, { policies, nameWidth, barWidth }: Layout): string {
  const bars = policies.map((policy) => {
    const value = scene.load.get(policy)?.get(host);
    if (value === undefined) return `${policy} ${'?'.padEnd(barWidth)}     `;
    return `${policy} ${bar(terminal, value, barWidth)} ${percent(value)}`;
  });
  const servers = `${String(scene.serversByHost.get(host) ?? 0).padStart(3)} VMs`;
  const note = scene.notes.get(host);
  return `${cutMiddle(host, nameWidth).padEnd(nameWidth)}  ${bars.join('  ')}  ${servers}${note === undefined ? '' : `  ${paint(terminal, 'dim', note)}`}`;
}

function bar(terminal: Terminal, value: number, width: number): string {
  const full = Math.max(0, Math.min(width, Math.round(value * width)));
  const style = value > 0.75 ? 'red' : value > 0.5 ? 'yellow' : 'green';
  return terminal.colour
    ? `${paint(terminal, style, '█'.repeat(full))}${paint(terminal, 'dim', '░'.repeat(width - full))}`
    : `${'#'.repeat(full)}${'.'.repeat(width - full)}`;
}

const percent = (value: number): string => `${Math.round(value * 100)}%`.padStart(4);

function imbalanceLine(scene: Scene, terminal: Terminal, policy: string): string {
  const value = imbalance(scene, policy);
  const threshold = scene.thresholds.get(policy) ?? 0;
  if (value === null) return `imbalance ${policy}: not measured yet`;
  const text = `imbalance ${policy}: ${value.toFixed(3)}  (threshold ${threshold.toFixed(3)})`;
  return value <= threshold ? paint(terminal, 'green', `${text}  balanced`) : paint(terminal, 'yellow', text);
}

/** Moves that were not cancelled. */
const wanted = ({ moves }: Scene): number => moves.filter((m) => m.state !== 'cancelled').length;

/** Moves under way first, then the ones that ended last. */
function latest(moves: readonly SceneMove[]): SceneMove[] {
  const active = moves.filter((m) => m.state === 'migrating' || m.state === 'retrying');
  const ended = moves.filter((m) => ['done', 'cancelled', 'failed'].includes(m.state));
  return [...active.slice(0, MOVES_SHOWN), ...ended.slice(-Math.max(0, MOVES_SHOWN - active.length)).reverse()];
}

const words = {
  waiting: 'waits',
  migrating: 'migrating',
  done: 'moved',
  retrying: 'retrying',
  cancelled: 'cancelled',
  failed: 'failed',
} as const;

/** One move in one line. */
export const sceneMoveText = (move: SceneMove): string =>
  `${move.server}  ${move.from} -> ${move.to}  ${words[move.state]}${move.text === '' ? '' : `  ${move.text}`}`;

/** One line on the state of the balance, for a terminal that cannot be drawn over. */
export function balanceText(scene: Scene): string {
  const parts = [...scene.thresholds].map(([policy, threshold]) => {
    const value = imbalance(scene, policy);
    return `${policy} ${value === null ? '?' : value.toFixed(3)} (threshold ${threshold.toFixed(3)})`;
  });
  const done = scene.moves.filter((m) => m.state === 'done').length;
  return `imbalance ${parts.join(', ')}; ${done} of ${wanted(scene)} moves done`;
}

const byName = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true });
