import { elapse, until } from '@kronos/clock/testing';
import { onNewest } from '@kronos/eventlog/testing/newest';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeIsland, noIslands } from './network.ts';
import { completed, SCENE, systemFor } from './system.ts';

const isolated = noIslands();

onNewest('three NATS servers', ({ version }) => {
  describe(`three servers ${version}, ${SCENE}`, () => {
    it('when a follower is killed and comes back', async () => {
      const kronos = await systemFor();
      await kronos.moving(40);
      const [follower] = (await kronos.leader()).followers;
      await follower?.kill();
      const ends = completed(kronos.events);
      await kronos.until('ten more ends', (events) => completed(events) >= ends + 10);
      await follower?.restart();
      expect(await kronos.aftermath()).toEqual([]);
    });

    it('when the server that an executor is connected to is killed', async () => {
      const kronos = await systemFor();
      await kronos.moving(25);
      const server = await kronos.serverOfExecutor();
      await server.kill();
      const ends = completed(kronos.events);
      await kronos.until('moves that end without it', (events) => completed(events) > ends);
      await server.restart();
      expect(await kronos.aftermath()).toEqual([]);
    });

    it('when two are killed, so that nothing can be written, and come back', async () => {
      const kronos = await systemFor();
      await kronos.moving(25);
      const { leader, followers } = await kronos.leader();
      const [follower] = followers;
      await Promise.all([leader.kill(), follower?.kill()]);
      await elapse(15_000, 'longer than the ack wait, and than the cloud takes for the moves: every delivery is lost');
      await until(
        async () => /^jetstream-unavailable: .*no leader: 2 of 3 are needed/.test(await kronos.alarm()),
        90_000,
      );
      await Promise.all([leader.restart(), follower?.restart()]);
      expect(await kronos.aftermath()).toEqual([]);
    });

    it('when all are restarted one after the other, as for an upgrade', async () => {
      const kronos = await systemFor();
      await kronos.moving(10);
      for (const server of kronos.servers) {
        await server.restart();
        await kronos.level();
      }
      expect(await kronos.aftermath()).toEqual([]);
    });

    it.skipIf(isolated !== null)(`when one server is cut off${isolated === null ? '' : `: ${isolated}`}`, async () => {
      const island = makeIsland();
      onTestFinished(() => island.remove());
      const kronos = await systemFor([island.mainland, island.mainland, island.island]);
      const remote = kronos.servers.find(({ url }) => url.includes(island.island.address));
      if (remote === undefined) throw new Error('no server is on the island');
      await kronos.promote(remote);
      await kronos.moving(25);
      island.pull();
      await kronos.until(
        'all fifty moves to have begun and some to have ended without it',
        (events) => {
          const count = (type: string) => events.filter((event) => event.type === type).length;
          return count('migration.started') >= 50 && count('migration.completed') >= 10;
        },
        90_000,
      );
      island.plug();
      expect(await kronos.aftermath()).toEqual([]);
    });
  });
});
