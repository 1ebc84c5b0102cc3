import { afterAll, beforeAll, describe } from 'vitest';
import type { CloudUnderTest } from './cloud.ts';
import { liveMigrationContract } from './moves.ts';
import { computeReadContract, identityContract, placementContract, prometheusContract } from './reads.ts';
import { resizeContract } from './resizes.ts';

export type { CloudUnderTest } from './cloud.ts';

/** What a cloud must do for Kronos to rely on it, fact by fact; run against the simulated cloud and against a real one. */
export function cloudContract(name: string, start: () => Promise<CloudUnderTest>): void {
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
    identityContract(get);
    computeReadContract(get);
    placementContract(get);
    prometheusContract(get);
    liveMigrationContract(get);
    resizeContract(get);
  });
}
