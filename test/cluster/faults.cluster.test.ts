import { onNewest } from '@kronos/eventlog/testing/newest';
import { describe, expect, it } from 'vitest';
import { completed, SCENE, systemFor } from './system.ts';

onNewest('three NATS servers', ({ version }) => {
  describe(`three servers ${version}, ${SCENE}`, () => {
    it('when the leader of the log is killed', async () => {
      const kronos = await systemFor();
      await kronos.moving(25);
      const { leader } = await kronos.leader();
      await leader.kill();
      const ends = completed(kronos.events);
      await kronos.until('moves that end without it', (events) => completed(events) > ends);
      await leader.restart();
      expect(await kronos.aftermath()).toEqual([]);
    });
  });
});
