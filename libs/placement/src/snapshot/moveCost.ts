/** The amount that a live migration copies: memory several times while the server writes to it, and local disk once. */
import {
  type CompleteEngineOptions,
  type ServerObservation,
  type Snapshot,
  vmQueryOf,
  vmReadingOf,
} from '@kronos/contracts';
import { recentMoves } from '@kronos/rules';
import type { VmPart } from '../cluster/build.ts';
import type { Memory } from './memory.ts';
import { own } from './unmovable.ts';

/** Memory is copied at most this many times: the hypervisor throttles a server that writes about as fast as the link. */
const MOST_COPIES = 10;
const MIB = 1024 ** 2;

type Costed = Pick<ServerObservation, 'id' | 'ramMb' | 'diskGb'>;

/** The cost of a move of each server, by the amount that it copies and its recent moves. @param now ms since the epoch */
export function costsOf(
  snapshot: Pick<Snapshot, 'policies' | 'moveCostReadings'>,
  memory: Pick<Memory, 'copyBytesPerSecond' | 'releases'>,
  options: Pick<CompleteEngineOptions, 'moveRateMib'>,
  now: number,
): (server: Costed) => Pick<VmPart, 'copyGib' | 'recentMoves'> {
  const copyGib = copyGibOf(snapshot, memory, options);
  return (server) => ({
    copyGib: copyGib(server),
    recentMoves: recentMoves(own(memory.releases, server.id) ?? [], now),
  });
}

/**
 * GiB that a move of each server copies. The server rewrites a part of its memory during the copy: the rate of `moveCostQuery` divided
 * by the rate of the links. That part is copied again, and so on. The highest rate of several policies counts. A server without a value
 * counts as the server of the aggregate that writes most. Memory counts once if no server has a value.
 *
 * @returns a function of the server
 */
export function copyGibOf(
  { policies, moveCostReadings = [] }: Pick<Snapshot, 'policies' | 'moveCostReadings'>,
  { copyBytesPerSecond }: Pick<Memory, 'copyBytesPerSecond'>,
  { moveRateMib }: Pick<CompleteEngineOptions, 'moveRateMib'>,
): (server: Costed) => number {
  const carried = copyBytesPerSecond ?? moveRateMib * MIB;
  const readings = policies.flatMap((policy) => {
    const asked = vmQueryOf(policy, 'move_cost');
    if (!policy.enabled || asked === null) return [];
    const values = vmReadingOf(moveCostReadings, asked)?.values ?? {};
    return [{ values, most: Math.max(0, ...Object.values(values)) }];
  });
  // Without queries nothing is looked up for each server.
  if (readings.length === 0) return ({ ramMb, diskGb }) => ramMb / 1024 + diskGb;
  return ({ id, ramMb, diskGb }) => {
    const written = Math.max(0, ...readings.map(({ values, most }) => own(values, id) ?? most));
    const share = Math.min(1 - 1 / MOST_COPIES, written / carried);
    return ramMb / 1024 / (1 - share) + diskGb;
  };
}
