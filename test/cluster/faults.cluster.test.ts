import { describe, expect, it } from 'vitest';
import { completed, crewFor, newest, SCENE } from './crew.ts';

if (typeof newest === 'string') it.skip(`three NATS servers: ${newest}`);
else
  describe(`three servers ${newest.version}, ${SCENE}`, () => {
    it('when the leader of the log is killed', async () => {
      const kronos = await crewFor();
      await kronos.moving(25);
      const { leader } = await kronos.leader();
      await leader.kill();
      const ends = completed(kronos.events);
      await kronos.until('moves that end without it', (events) => completed(events) > ends);
      await leader.restart();
      expect(await kronos.aftermath()).toEqual([]);
    });
  });
