import { beforeEach, describe, expect, test } from 'vitest';
import type { CloudUnderTest } from './cloud.ts';
import { Wire } from './wire.ts';

/** What becomes of a live migration whose destination dies: Nova waits for replies that never come. */
export function destinationDeathContract(cloud: () => CloudUnderTest): void {
  describe('Nova, a live migration', () => {
    let wire: Wire;
    let a: string;
    let b: string;
    beforeEach(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
      [a, b] = cloud().hosts;
    });

    test('whose destination dies ends error, with the server in ERROR on it', async () => {
      const id = await wire.bootOne(a);
      await wire.start(id, b);
      await wire.until('it runs', async () => (await wire.rows(id))[0]?.status === 'running');
      await cloud().kill(b);
      await wire.until('it is over', async () => (await wire.rows(id))[0]?.status === 'error');
      await wire.until('it is broken', async () => (await wire.server(id)).status === 'ERROR');
      expect((await wire.server(id))['OS-EXT-SRV-ATTR:host']).toBe(b);
      await cloud().start(b);
    });

    test('that waits behind one whose destination died ends error or failed, the server free and active on its source', async () => {
      const [ran, waited] = [await wire.bootOne(a), await wire.bootOne(a)];
      await cloud().fault(ran, 'hang');
      await wire.start(ran, b);
      await wire.until('it runs', async () => (await wire.rows(ran))[0]?.status === 'running');
      await wire.start(waited, b);
      await wire.until('it waits', async () => (await wire.rows(waited))[0]?.status === 'queued');
      await cloud().kill(b);
      await cloud().fault(ran, null);
      await wire.until('the first is over', async () => (await wire.rows(ran))[0]?.status === 'error');
      expect((await wire.server(ran))['OS-EXT-SRV-ATTR:host']).toBe(b);
      const { row } = await wire.follow(waited);
      expect(['error', 'failed']).toContain(row.status);
      expect(row.dest_compute).toBe(b);
      await wire.until('it is free', async () => (await wire.server(waited))['OS-EXT-STS:task_state'] === null);
      const server = await wire.server(waited);
      expect([server.status, server['OS-EXT-SRV-ATTR:host']]).toEqual(['ACTIVE', a]);
      await cloud().start(b);
    });
  });
}
