import { startNatsServer } from '@kronos/eventlog/testing';
import { expect, it } from 'vitest';
import { durabilityText, readDurability } from './durability.ts';

const monitoring = (logText: string): string =>
  `http://127.0.0.1:${/http monitor on 127\.0\.0\.1:(\d+)/.exec(logText)?.[1]}`;

it('a real server says how it writes; one that does not answer is not known', async () => {
  const config = 'http: "127.0.0.1:-1"';
  const always = await startNatsServer({ version: 'newest', config, jetstream: 'sync_interval: always' });
  const late = await startNatsServer({ version: 'newest', config });
  const urls = [monitoring(always.logText()), monitoring(late.logText()), 'http://127.0.0.1:1'];
  try {
    const found = await readDurability(urls);
    expect(found.map(({ writes }) => writes)).toEqual(['always', 'later', 'unknown']);
    expect(found[1]).toMatchObject({ everySeconds: 120 });
    expect(found.map(durabilityText)).toEqual([
      null,
      expect.stringContaining('every 120 s'),
      expect.stringContaining('127.0.0.1:1'),
    ]);
  } finally {
    await always.stop();
    await late.stop();
  }
});
