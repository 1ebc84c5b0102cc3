import { clause, isCancelled, type LogEvent, timeMs } from '@kronos/contracts';
import { said } from '../times.ts';

/** The picture of the demo: the cloud's load by Prometheus, and Kronos's log. */
export type Scene = {
  /** By policy name, in the order of the policies: host -> utilisation 0..1. */
  readonly load: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly thresholds: ReadonlyMap<string, number>;
  /** Hosts that may be destinations: the imbalance counts over these. */
  readonly destinations: ReadonlySet<string>;
  readonly notes: ReadonlyMap<string, string>;
  readonly serversByHost: ReadonlyMap<string, number>;
  readonly moves: readonly SceneMove[];
  readonly cycles: number;
  readonly lastDecision: {
    readonly outcome: string;
    readonly text: string;
    readonly shareOfPossible: number | null;
  } | null;
  /** Decisions in a row since nothing was planned and nothing was in flight. */
  readonly quietCycles: number;
};

export type SceneMove = {
  readonly taskId: string;
  readonly server: string;
  readonly from: string;
  readonly to: string;
  readonly state: 'waiting' | 'migrating' | 'done' | 'retrying' | 'cancelled' | 'failed';
  readonly text: string;
};

export const emptyScene = (thresholds: ReadonlyMap<string, number>): Scene => ({
  load: new Map([...thresholds.keys()].map((p) => [p, new Map()])),
  thresholds,
  destinations: new Set(),
  notes: new Map(),
  serversByHost: new Map(),
  moves: [],
  cycles: 0,
  lastDecision: null,
  quietCycles: 0,
});

const inFlight = (moves: readonly SceneMove[]): number =>
  moves.filter((m) => m.state === 'waiting' || m.state === 'migrating' || m.state === 'retrying').length;

/** The scene after one more event of the log. */
export function onEvent(scene: Scene, event: LogEvent): Scene {
  const change = (taskId: string, state: SceneMove['state'], text: string, to?: string): Scene => ({
    ...scene,
    moves: scene.moves.map((m) => (m.taskId === taskId ? { ...m, state, text, to: to ?? m.to } : m)),
  });
  switch (event.type) {
    case 'cycle.decided': {
      const { plan, outcome, reason, release } = event.data;
      const planned = plan !== null && release === 'released' ? plan.steps : [];
      const added = planned.map(
        (s): SceneMove => ({
          taskId: s.taskId,
          server: s.serverName,
          from: s.from,
          to: s.to,
          state: 'waiting',
          text: s.phase,
        }),
      );
      const quiet = outcome === 'quiet' && inFlight(scene.moves) === 0;
      return {
        ...scene,
        cycles: scene.cycles + 1,
        moves: [...scene.moves, ...added],
        quietCycles: quiet ? scene.quietCycles + 1 : 0,
        lastDecision: {
          outcome,
          text: said(clause(reason.text), timeMs(event.data.snapshotTime)),
          shareOfPossible: plan?.shareOfPossible ?? null,
        },
      };
    }
    case 'migration.started':
      return change(event.data.taskId, 'migrating', `attempt ${event.data.attempt}`, event.data.destination);
    case 'migration.completed':
      return change(event.data.taskId, 'done', seconds(event.data.nova?.totalMs ?? null), event.data.host);
    case 'migration.failed':
      return event.data.retryPending
        ? change(event.data.taskId, 'retrying', event.data.reason.text)
        : change(event.data.taskId, isCancelled(event) ? 'cancelled' : 'failed', event.data.reason.text);
    default:
      return scene;
  }
}

const seconds = (ms: number | null): string => (ms === null ? '' : `${(ms / 1000).toFixed(1)} s`);

/** max - min over the hosts that may be destinations; null while nothing was measured. */
export function imbalance(scene: Scene, policy: string): number | null {
  const values = [...(scene.load.get(policy) ?? [])].filter(([h]) => scene.destinations.has(h)).map(([, v]) => v);
  return values.length === 0 ? null : Math.max(...values) - Math.min(...values);
}

/** Every policy at or below its threshold. */
export const balanced = (scene: Scene): boolean =>
  [...scene.thresholds].every(
    ([policy, threshold]) => (imbalance(scene, policy) ?? Number.POSITIVE_INFINITY) <= threshold,
  );
