import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { runHere } from './command.ts';
import { openWorld, type World } from './world.ts';

describe('rolling maintenance', () => {
  let world: World | null = null;
  let directory: string | null = null;
  afterEach(async () => {
    await world?.close();
    if (directory !== null) await rm(directory, { recursive: true });
    world = directory = null;
  });

  const act = async (of: World, what: object): Promise<void> => {
    const answer = await fetch(`${of.stage.cloudUrl}/acts`, { method: 'POST', body: JSON.stringify([what]) });
    expect(answer.status).toBe(200);
  };

  it('empties a host, runs the hook, and enables only what Kronos disabled', async () => {
    // Only rules ask for moves: balancing would compete for them.
    const env = {
      OS_ENGINE__BALANCE: 'false',
      OS_ENGINE__EVACUATION_IGNORES_COOLDOWN: 'true',
      OS_ENGINE__EVALUATION_INTERVAL: '6',
    };
    world = await openWorld({ env });
    directory = await mkdtemp(join(tmpdir(), 'kronos-drain-'));
    const config = { KRONOS_CONFIG: world.stage.configFile };
    await world.until('a decision', (events) => events.some(({ type }) => type === 'cycle.decided'));

    const shown = await runHere(['drain', 'compute-11'], config);
    expect(shown.text).toMatch(/compute-11 \(general\).*VMs\n/);
    expect(shown.text).toContain('Add --yes to drain');
    expect(world.events.some(({ type }) => type === 'host.drainAsked')).toBe(false);

    // An operator disabled compute-12 earlier, for a firmware upgrade.
    const seen = join(directory, 'seen');
    const hook = `echo $KRONOS_AGGREGATE/$KRONOS_HOST >> ${seen}`;
    const run = runHere(
      ['drain', 'compute-11', 'compute-12', '--one-by-one', '--hook', hook, '--yes', '-r', 'change 4711'],
      config,
    );
    const { status, text } = await run;
    expect(status, text).toBe(0);
    expect(text).toContain('Every VM of the 2 hosts can leave.');
    expect(await readFile(seen, 'utf8')).toBe('general/compute-11\ngeneral/compute-12\n');

    const of = (host: string) =>
      world?.events.flatMap((e) =>
        e.type.startsWith('host.') && 'host' in e.data && e.data.host === host ? [e] : [],
      ) ?? [];
    await world.until('the end of the second drain', (events) =>
      events.some(({ type }) => type === 'host.leftDisabled'),
    );
    // On a machine that stalls for 10 s a move may need another attempt.
    const attempts: readonly string[] = ['host.claimed', 'host.actFailed'];
    expect(of('compute-11').flatMap(({ type }) => (attempts.includes(type) ? [] : [type]))).toEqual([
      'host.drainAsked',
      'host.disabled',
      'host.drained',
      'host.undrainAsked',
      'host.enabled',
    ]);
    expect(of('compute-11')).toContainEqual(
      expect.objectContaining({ type: 'host.disabled', data: expect.objectContaining({ byKronos: true }) }),
    );
    expect(of('compute-12').at(-1)).toMatchObject({
      type: 'host.leftDisabled',
      data: { disabledReason: 'firmware upgrade' },
    });
    // Every move was an evacuation, and each VM of both hosts has left.
    const moves = world.events.flatMap((e) => (e.type === 'cycle.decided' ? (e.data.plan?.steps ?? []) : []));
    expect(new Set(moves.map(({ phase, from }) => `${phase} ${from}`))).toEqual(
      new Set(['evacuate compute-11', 'evacuate compute-12']),
    );

    // When a hook fails, the command leaves the host as it is and says how to continue.
    const failed = await runHere(
      ['drain', 'compute-11', 'compute-10', '--one-by-one', '--hook', 'exit 3', '--yes'],
      config,
    );
    expect(failed.status, failed.text).toBe(1);
    expect(failed.text).toContain('the hook failed on compute-11: it ended with status 3');
    expect(failed.text).toContain("To continue: kronos drain compute-11 compute-10 --one-by-one --hook 'exit 3'");
    const { text: status2 } = await runHere(['status'], config);
    expect(status2).toMatch(/drain +compute-11: drained/);
    const kept = await runHere(['drain', 'compute-12', '--one-by-one', '--hook', 'exit 3', '--yes'], config);
    expect(kept.text).toContain('compute-12: disabled before the drain, and not by Kronos.');
    expect(kept.text).not.toContain('To enable');

    // When somebody enables the host by hand, the drain ends and Kronos does not disable the host again.
    await act(world, { act: 'setHost', host: 'compute-11', disabled: false });
    await world.until('the end of the drain', () => of('compute-11').at(-1)?.type === 'host.enabled');
    expect(of('compute-11').at(-1)?.data).toMatchObject({ byKronos: false });
  });
});
