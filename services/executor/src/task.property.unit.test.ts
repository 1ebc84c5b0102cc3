import { errorText } from '@kronos/contracts';
import { random } from '@kronos/projections/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleTask } from '../testing/sample.ts';
import { runWorld, type WorldReport } from '../testing/world/world.ts';
import { defaultTaskOptions } from './options.ts';

const task = sampleTask({ ramMb: 2048 });
const options = { ...defaultTaskOptions, deadlineMinMs: 90_000, deadlinePerGibMs: 0 };

const safe = (holds: (report: WorldReport) => void): void => {
  fc.assert(
    fc.property(fc.integer(), fc.boolean(), (seed, dryRun) => {
      const report = runWorld(task, { ...options, dryRun }, random(seed));
      try {
        holds(report);
      } catch (error) {
        throw new Error(`seed ${seed}: ${errorText(error)}\n${report.history.join('\n')}`);
      }
    }),
    { numRuns: 1500 },
  );
};

describe('whatever crashes, sleeps, is lost, or answers late', () => {
  it('a task ends in exactly one final result, and its messages leave the queue', () => {
    safe(({ finals, messagesLeft }) => {
      expect(finals).toBe(1);
      expect(messagesLeft).toBe(0);
    });
  });

  it('an attempt has at most one request that Nova took', () => {
    safe(({ attempts }) => {
      for (const { posts, attempt } of attempts) expect(posts, `attempt ${attempt}`).toBeLessThanOrEqual(1);
    });
  });

  it('an attempt has at most one outcome, and none is started after another has ended for good', () => {
    safe(({ attempts }) => {
      for (const { outcomes } of attempts) expect(outcomes).toBe(1);
      expect(attempts.filter((a) => a.next === null)).toHaveLength(1);
      expect(attempts.at(-1)?.next).toBeNull();
    });
  });

  it('an attempt ends when Nova has ended it: none of its requests comes later, nothing of it is still under way', () => {
    safe(({ attempts }) => {
      for (const { attempt, late, unfinished } of attempts)
        expect({ attempt, late, unfinished }).toEqual({ attempt, late: 0, unfinished: false });
    });
  });

  it('a result says where the server is', () => {
    safe(({ attempts, serverHost }) => {
      const last = attempts.at(-1);
      if (last?.outcome === 'completed') expect(last.host).toBe(serverHost);
      if (last?.outcome === 'failed' && last.started) expect(serverHost).not.toBe(last.destination);
    });
  });

  it('no more attempts are made than allowed', () => {
    safe(({ attempts }) => expect(attempts.length).toBeLessThanOrEqual(1 + options.maxRetries));
  });
});
