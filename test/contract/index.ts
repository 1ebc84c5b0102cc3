import { afterAll, beforeAll, describe } from 'vitest';
import type { CloudUnderTest } from './cloud.ts';
import { deathContract } from './deaths.ts';
import { liveMigrationContract } from './moves.ts';
import { computeReadContract, identityContract, placementContract, prometheusContract } from './reads.ts';
import { resizeContract } from './resizes.ts';
import { unreachableCellContract } from './unreachable.ts';
import { liveMigrationVariants } from './variants.ts';

export type { CloudUnderTest } from './cloud.ts';

type Part = (cloud: () => CloudUnderTest) => void;

/** The facts that the services rely on. */
export const services: readonly Part[] = [
  identityContract,
  computeReadContract,
  placementContract,
  prometheusContract,
  liveMigrationContract,
];
/**
 * Parts that take minutes on a real cloud, or need two cells: cold migration, resize, waits for replies of a host that died, rules of
 * live migration tried once more, and a cell that Nova's API does not reach.
 */
export const slow: readonly Part[] = [resizeContract, deathContract, liveMigrationVariants, unreachableCellContract];

/** The behaviour that Kronos relies on, fact by fact. It runs against the simulated cloud and against a real one. */
export function cloudContract(name: string, start: () => Promise<CloudUnderTest>, parts: readonly Part[]): void {
  describe(name, () => {
    let cloud: CloudUnderTest | undefined;
    const get = (): CloudUnderTest => {
      if (cloud === undefined) throw new Error('the cloud did not start');
      return cloud;
    };
    beforeAll(async () => {
      cloud = await start();
    });
    afterAll(async () => {
      await cloud?.close();
    });
    for (const part of parts) part(get);
  });
}
