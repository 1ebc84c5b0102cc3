import {
  type CellsReading,
  type CompleteEngineOptions,
  iso,
  MAX_PROPOSED_STEPS,
  type ProposalDecision,
  type Reason,
  type Snapshot,
  type Step,
  taskId,
  timeMs,
} from '@kronos/contracts';
import { migrationWindow, type WindowState } from '@kronos/rules';
import { aggregateGates } from '../gate.ts';
import { proposalDecision } from '../proposal.ts';
import { type ReasonCode, reasonMeanings } from '../reasons.ts';
import type { Memory } from '../snapshot/memory.ts';
import { vmWindows } from '../snapshot/observe.ts';
import { own } from '../snapshot/unmovable.ts';
import { plannedReason } from '../windows.ts';
import { type CellStep, planCells } from './cells.ts';

/** The memory of an aggregate, and the options in force for it. */
type Remembered = { readonly memory: Memory; readonly options: CompleteEngineOptions };

export type DecideCellsInput = Remembered & {
  readonly planId: string;
  /** Of the aggregate that the servers leave, with its part `cells`. */
  readonly snapshot: Snapshot & { readonly cells: CellsReading };
  /** By name: the other aggregates of the snapshot. */
  readonly others: Readonly<Record<string, Remembered>>;
};

/** Decides a request for moves between cells. A pure function: the same input gives the same bytes. */
export function decideCells(input: DecideCellsInput): ProposalDecision {
  const { snapshot, memory, options, others, planId } = input;
  const { asked, map, settings, flavors, facts, metadata, unread } = snapshot.cells;
  const end: typeof proposalDecision = (outcome, reason, more) =>
    proposalDecision(outcome, reason, { warnings: unread, ...more });

  const known = [
    { snapshot, memory, options },
    ...snapshot.cells.others.flatMap((other) => {
      const of = own(others, other.aggregate);
      return of === undefined ? [] : [{ snapshot: other, ...of }];
    }),
  ];
  const unmapped = [snapshot.aggregate, asked.to].find((name) => own(map, name) === undefined);
  if (unmapped !== undefined) return end('gated', reasonOf('cells-off', { aggregate: unmapped }));
  for (const { snapshot: of, memory } of known) {
    if (of.aggregate !== snapshot.aggregate && of.aggregate !== asked.to) continue;
    const [gate] = aggregateGates(of, memory);
    if (gate !== undefined) return end('gated', { ...gate, detail: { ...gate.detail, aggregate: of.aggregate } });
  }

  const limit = Math.min(asked.limit ?? MAX_PROPOSED_STEPS, MAX_PROPOSED_STEPS);
  const here = { ...asked, from: asked.from.filter((name) => isHere(name, snapshot)), limit };
  const plan = planCells(here, {
    aggregates: known.map((each) => ({ ...each, cell: own(map, each.snapshot.aggregate) ?? null, metadata })),
    flavors,
    facts,
    sharing: {
      volumes: settings.volumesShared,
      networks: settings.networksShared,
      maxImageGib: settings.maxImageGib,
    },
    granted: null,
    crossCellWeight: settings.crossCellWeight,
    pace: { fixedSeconds: settings.downtimeFixedSeconds, secondsPerGib: settings.downtimeSecondsPerGib },
  });
  const strange = [...asked.from.filter((name) => !isHere(name, snapshot)), ...plan.unknown];
  if (strange.length > 0) return end('gated', reasonOf('cells-unknown-name', { names: strange }));

  const refusals: Record<string, number> = {};
  for (const { reason } of plan.refused) refusals[reason.code] = (refusals[reason.code] ?? 0) + 1;
  const rest = { refused: [...plan.refused], refusals, left: plan.left };
  if (plan.steps.length === 0) return end('quiet', reasonOf('cells-none', {}), rest);

  const now = timeMs(snapshot.time);
  const window = migrationWindow(options, now);
  const startBefore = windowEnds(snapshot, window, options, now);
  const steps = plan.steps.map((step, i) => stepOf(step, { planId, step: i + 1 }, snapshot, startBefore));
  const reason = plannedReason(`${steps.length} of at most ${limit} moves`, window);
  return end('planned', reason, { ...rest, steps });
}

const reasonOf = (code: ReasonCode, detail: NonNullable<Reason['detail']>): Reason => ({
  code,
  text: reasonMeanings[code],
  detail,
});

/** The servers that leave belong to this aggregate: only its state has their history. */
const isHere = (name: string, { aggregate, hosts }: Snapshot): boolean =>
  name === aggregate || hosts.some((host) => host.name === name);

/** The move of a server must start before this moment; null: no limit. */
function windowEnds(
  { servers }: Snapshot,
  window: WindowState,
  options: CompleteEngineOptions,
  now: number,
): (serverId: string) => string | null {
  const windowOf = vmWindows(options, now);
  const byId = new Map(servers.map((server) => [server.id, server]));
  return (id) => {
    const server = byId.get(id);
    const ownEnd = server === undefined ? null : windowOf(server).endMs;
    const end = Math.min(
      window.open ? (window.untilMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
      ownEnd ?? Number.POSITIVE_INFINITY,
    );
    return Number.isFinite(end) ? iso(end) : null;
  };
}

function stepOf(
  found: CellStep,
  { planId, step }: { readonly planId: string; readonly step: number },
  { serverGroups, cells }: DecideCellsInput['snapshot'],
  startBefore: (serverId: string) => string | null,
): Step {
  const { serverId, serverName, from, to, alternates, resources, ramMb, diskGb, why } = found;
  const before = startBefore(serverId);
  return {
    step,
    taskId: taskId(planId, step),
    phase: 'cell',
    parking: false,
    serverId,
    serverName,
    from,
    to,
    // Nova chooses the host of a resize, so there are no alternates.
    alternates: found.method === 'resize' ? [] : [...alternates],
    dependsOn: [],
    delaySeconds: 0,
    ...(before === null ? {} : { startBefore: before }),
    groups: serverGroups.filter(({ members }) => members.includes(serverId)).map(({ id, policy }) => ({ id, policy })),
    resources: { ...resources },
    ramMb,
    diskGb,
    weights: {},
    why,
    cell: {
      method: found.method,
      target: cells.asked.to,
      oldFlavor: found.oldFlavor,
      newFlavor: found.newFlavor,
      fromCell: found.fromCell,
      toCell: found.toCell,
      downtimeSeconds: found.downtimeSeconds,
      confirm: cells.settings.confirm,
      verifySeconds: cells.settings.verifySeconds,
    },
  };
}
