import { elapse } from '@kronos/clock/testing';
import { type ClusterNode, findNatsServer } from '@kronos/eventlog/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Crew, openCrew } from './crew.ts';
import { makeIsland, noIslands } from './network.ts';

const found = await findNatsServer('newest').catch((error: Error) => error.message);
const isolated = noIslands();

const completed = (events: Crew['events']): number =>
  events.filter((event) => event.type === 'migration.completed').length;

/** A test ends with all as it should be, or with the words of what is not. */
async function crew(nodes: readonly ClusterNode[] | 3 = 3): Promise<Crew> {
  if (typeof found === 'string') throw new Error(found);
  const opened = await openCrew(found, nodes);
  onTestFinished(() => opened.close());
  return opened;
}

if (typeof found === 'string') it.skip(`three NATS servers: ${found}`);
else
  describe(`three servers ${found.version}, three copies, fifty moves under way: nothing is lost, nothing done twice, and all services go on`, () => {
    it('when the leader of the log is killed', async () => {
      const kronos = await crew();
      await kronos.moving(25);
      const { leader } = await kronos.leader();
      await leader.kill();
      const ends = completed(kronos.events);
      await kronos.until('moves that end without it', (events) => completed(events) > ends);
      await leader.restart();
      expect(await kronos.aftermath()).toEqual([]);
    });

    it('when a follower is killed and comes back', async () => {
      const kronos = await crew();
      await kronos.moving(40);
      const [follower] = (await kronos.leader()).followers;
      await follower?.kill();
      const ends = completed(kronos.events);
      await kronos.until('ten more ends', (events) => completed(events) >= ends + 10);
      await follower?.restart();
      expect(await kronos.aftermath()).toEqual([]);
    });

    it('when the server that an executor is connected to is killed', async () => {
      const kronos = await crew();
      await kronos.moving(25);
      const server = await kronos.serverOfExecutor();
      await server.kill();
      const ends = completed(kronos.events);
      await kronos.until('moves that end without it', (events) => completed(events) > ends);
      await server.restart();
      expect(await kronos.aftermath()).toEqual([]);
    });

    it('when two are killed, so that nothing can be written, and come back', async () => {
      const kronos = await crew();
      await kronos.moving(25);
      const { leader, followers } = await kronos.leader();
      const [follower] = followers;
      await Promise.all([leader.kill(), follower?.kill()]);
      await elapse(15_000, 'longer than the ack wait, and than the cloud takes for the moves: every delivery is lost');
      await Promise.all([leader.restart(), follower?.restart()]);
      expect(await kronos.aftermath()).toEqual([]);
    });

    it('when all are restarted one after the other, as for an upgrade', async () => {
      const kronos = await crew();
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
      const kronos = await crew([island.mainland, island.mainland, island.island]);
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
