import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, within } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { messageId } from '@kronos/contracts';
import { LogFull } from '@kronos/eventlog';
import { demoPolicies } from '@kronos/simcloud';
import { afterEach, describe, expect, it } from 'vitest';
import { kronos } from '../../libs/cli/test/world.ts';
import { openWorld, type World } from '../e2e/world.ts';

type Alarm = { code: string; severity: string; about: string; text: string; explains: { code: string }[] };
type Shown = { well: boolean; alarms: Alarm[]; exit: number };

/** The answer of `kronos status --json` now. */
async function statusOf(world: World): Promise<Shown> {
  const { status, out, err } = await within(
    systemClock,
    kronos(['status', '--json'], { nowMs: Date.now, env: { KRONOS_CONFIG: world.stage.configFile } }),
    120_000,
    () => new Error(`kronos status does not end; this process waits for ${process.getActiveResourcesInfo()}`),
  );
  if (out === '') throw new Error(err);
  return { ...(JSON.parse(out) as Omit<Shown, 'exit'>), exit: status };
}

const alarmsOf = ({ alarms }: Shown) => alarms.filter(({ severity }) => severity === 'alarm');

/** Expects one line per cause: this is the only alarm, and it explains the others. */
function only(shown: Shown, code: string): boolean {
  const [alarm, ...others] = alarmsOf(shown);
  return alarm?.code === code && alarm.explains.length > 0 && others.length === 0;
}

/** Each question folds the whole log. */
const ASK_EVERY_MS = 500;

/** Asks until the answer meets the condition. */
async function answer(world: World, what: string, wanted: (shown: Shown) => boolean): Promise<Shown> {
  let shown: Shown | null = null;
  const look = async () => {
    shown = await statusOf(world);
    return wanted(shown) && shown;
  };
  const last = () => `status to say that ${what}: ${JSON.stringify(shown && alarmsOf(shown), null, 2)}`;
  return await until(look, 240_000, last, ASK_EVERY_MS);
}

const well = (world: World) => answer(world, 'all is well', (shown) => shown.well);

const act = async (world: World, ...acts: readonly object[]) => {
  const answer = await fetch(`${world.stage.cloudUrl}/acts`, {
    method: 'POST',
    body: JSON.stringify(acts),
    signal: AbortSignal.timeout(60_000),
  });
  expect(answer.status).toBe(200);
};

/** Fills the event log up to its limit. */
async function fill(world: World): Promise<void> {
  for (let i = 0; ; i++)
    try {
      await world.stage.log.append({
        type: 'aggregate.resumed',
        version: 1,
        id: messageId.control(`fill-${i}`),
        time: new Date().toISOString(),
        aggregate: 'general',
        by: { service: 'operator', instance: 'ada', version: '0.1.0' },
        correlationId: `fill-${i}`,
        causationId: null,
        data: { commandId: `fill-${i}`, comment: 'x'.repeat(i < 50 ? 16_000 : 1000) },
      });
    } catch (error) {
      expect(error).toBeInstanceOf(LogFull);
      return;
    }
}

describe('kronos status of a running installation', () => {
  let world: World | null = null;
  const files: string[] = [];
  afterEach(async () => {
    await world?.close();
    world = null;
    for (const file of files.splice(0)) await rm(file);
  });

  it('reports a dead planner, a cloud that does not answer and a host that is down, each on one line', async () => {
    world = await openWorld({ env: { OS_ENGINE__EVALUATION_INTERVAL: '5' } });
    await world.until('a decision', (events) => events.some((e) => e.type === 'cycle.decided'));
    expect((await well(world)).exit).toBe(0);

    // A killed planner is late with its work, then with its heartbeats; status has one line for both.
    world.stage.processes.get('planner')?.[0]?.kill('SIGKILL');
    const dead = await answer(world, 'the planner is missing', (shown) => only(shown, 'service-missing'));
    expect(dead).toMatchObject({ well: false, exit: 1 });
    expect(alarmsOf(dead)).toMatchObject([{ code: 'service-missing', about: 'planner' }]);
    expect(alarmsOf(dead)[0]?.explains.map(({ code }) => code)).toContain('snapshot-undecided');
    world.stage.start('planner');
    await well(world);

    // Nova answers nothing.
    await act(world, { act: 'faultApi', fault: { api: 'compute', effect: { kind: 'cut', when: 'before' } } });
    await answer(world, 'OpenStack is not read', (shown) => only(shown, 'openstack-unread'));
    await act(world, { act: 'mendApi' });
    await well(world);

    // A host dies.
    await act(world, { act: 'setHost', host: 'compute-03', up: false });
    const down = await answer(world, 'a host is down', ({ alarms }) => alarms.some(({ code }) => code === 'host-down'));
    expect(alarmsOf(down)).toMatchObject([
      { code: 'host-down', about: 'compute-03', text: 'nova-compute is down (1 of 12 hosts of general)' },
    ]);
    await act(world, { act: 'setHost', host: 'compute-03', up: true });
    await well(world);

    // An orderly stop is reported as one.
    world.stage.processes.get('ledger')?.[0]?.kill('SIGTERM');
    const stopped = await answer(world, 'the ledger was stopped', (shown) => alarmsOf(shown).length > 0);
    expect(alarmsOf(stopped)).toMatchObject([{ code: expect.stringMatching(/^service-/), about: /^ledger/ }]);
    await answer(world, 'the ledger was stopped', (shown) =>
      alarmsOf(shown).some(({ code, text }) => code === 'service-missing' && text.includes('was stopped')),
    );
  });

  it('reports policies that match no VM and no host', async () => {
    const file = join(tmpdir(), `kronos-policies-${process.pid}.yaml`);
    files.push(file);
    const text = demoPolicies
      .replace('vm_profile_label: instance_uuid', 'vm_profile_label: domain')
      .replace('host_mem_utilisation', 'host_mem_used_share');
    await writeFile(file, text);
    world = await openWorld({ env: { OS_ENGINE__POLICIES_FILE: file } });
    await world.until('a decision', (events) => events.some((e) => e.type === 'cycle.decided'));
    const shown = await answer(
      world,
      'the policies match nothing',
      ({ alarms }) =>
        alarms.some(({ code }) => code === 'policy-no-host') &&
        !alarms.some(({ code }) => code === 'service-missing' || code === 'service-unready'),
    );
    expect(shown.well).toBe(false);
    expect(alarmsOf(shown)).toMatchObject([
      {
        code: 'policy-no-host',
        about: 'policy memory in general',
        text: expect.stringContaining('has no series for its query'),
      },
      { code: 'policy-no-server', about: 'policy cpu in general', text: 'its query matches none of 150 VMs' },
    ]);
  });

  it('reports a full event log, in the words of the server, on one line', async () => {
    world = await openWorld({ env: () => ({ OS_NATS__LOG_MAX_BYTES: '1MiB' }) });
    await fill(world);
    const full = await answer(world, 'the log is full and nothing else is wrong', (shown) => {
      const [alarm, ...others] = alarmsOf(shown);
      const explained = alarm?.explains.some(({ code }) => code === 'snapshot-undecided');
      return others.length === 0 && alarm?.text.includes('maximum bytes') === true && explained === true;
    });
    expect(full.well).toBe(false);
    expect(alarmsOf(full)).toMatchObject([{ code: 'log-full', about: expect.stringContaining('KRONOS_LOG') }]);
  });
});
