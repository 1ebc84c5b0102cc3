import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandSnapshotId, type LogEvent, streamNames } from '@kronos/contracts';
import { aggregateState, fold, inFlight, type TaskFacts } from '@kronos/projections';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliWorld, openCliWorld, type ShellOptions } from './world.ts';

let world: CliWorld;
let scratch = '';

beforeAll(async () => {
  world = await openCliWorld({
    seed: 4,
    cycles: 34,
    hosts: 4,
    vmsPerHost: 4,
    failures: 0.3,
    commands: 0.15,
    planner: 'greedy',
  });
  scratch = await mkdtemp(join(tmpdir(), 'kronos-cli-out-'));
});
afterAll(async () => {
  await world?.close();
  await rm(scratch, { recursive: true, force: true });
});

/** The time of a command is close to the server's timestamp, far from the time at which it is given here. */
const SERVER_TIME = /(?!2026-01)\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ( \(in \d+ d\))?/g;

/** The ages of recorded times, which the golden files show; other ages are of commands of this run. */
const recorded = new Set([
  '00:18:45Z (5 s ago)',
  '00:33:00Z (25 s ago)',
  '00:33:05Z (20 s ago)',
  '00:33:10Z (15 s ago)',
]);

/** Replaces the parts that differ from run to run: paths, and the clock of the server. */
const steady = (text: string): string =>
  text
    .replaceAll(world.natsUrl, 'nats://SERVER')
    .replaceAll(scratch, 'SCRATCH')
    .replaceAll(world.directory, 'DIRECTORY')
    .replaceAll(/nats-server \d+\.\d+\.\d+/g, 'nats-server VERSION')
    .replaceAll(/"storedAt": ?"[^"]+"/g, '"storedAt":"STAMP"')
    .replaceAll(/"server": "[^"]+"/g, '"server": "VERSION"')
    .replaceAll(/("plannerVersion": ?)"\w+"/g, '$1"VERSION"')
    .replaceAll(/(planner \w+), version \w+/g, '$1, version VERSION')
    .replaceAll(/planner \w+ decides/g, 'planner VERSION decides')
    .replaceAll(/"bytes": \d+/g, '"bytes": N')
    // Those that the tests before it appended are among them.
    .replaceAll(/ and \d+ events of the log into/g, ' and N events of the log into')
    .replaceAll(/\d+(\.\d+)? (KiB|MiB)( of)/g, 'N KiB$3')
    .replaceAll(SERVER_TIME, 'SERVER-TIME')
    .replaceAll(/\d\d:\d\d:\d\dZ \(now\)/g, 'SERVER-TIME')
    .replaceAll(/\d\d:\d\d:\d\dZ \(\d+(\.\d)? s ago\)/g, (text) => (recorded.has(text) ? text : 'SERVER-TIME'))
    .replaceAll(/(is quarantined until) (\S+ )?\S+Z/g, '$1 SERVER-TIME')
    .replaceAll(/\(\d+ d ago\)/g, '(N d ago)')
    // Its length decides how wide the columns are.
    .replaceAll(/^.*SERVER-TIME.*$/gs, (all) => all.replaceAll(/(?<=\S) {2,}/g, '  '));

const golden = async (line: string | readonly string[], name?: string, options: ShellOptions = {}) => {
  const said = await world.kronos(line, options);
  const text = `$ kronos ${typeof line === 'string' ? line : line.join(' ')}\n${said.out}${said.err === '' ? '' : `--- errors\n${said.err}`}--- status ${said.status}\n`;
  const file = (name ?? (typeof line === 'string' ? line : line.join(' '))).replaceAll(/[^\w.-]+/g, '_');
  await expect(steady(text)).toMatchFileSnapshot(`golden/outputs/${file}.golden.txt`);
  return said;
};

const last = <T extends LogEvent['type']>(type: T): Extract<LogEvent, { type: T }> => {
  const found = world.operation.events.findLast(({ event }) => event.type === type)?.event;
  if (found?.type !== type) throw new Error(`no ${type} in the operation`);
  return found as Extract<LogEvent, { type: T }>;
};
const anyPlan = () => {
  const found = world.operation.events.find(
    ({ event }) => event.type === 'cycle.decided' && event.data.release === 'released',
  )?.event;
  if (found?.type !== 'cycle.decided' || found.data.plan === null) throw new Error('no plan');
  return found.data.plan;
};

describe('seeing', () => {
  it('status', () => golden('status'));
  it('status on a narrow terminal fits', async () => {
    const { out } = await golden('status', 'status-narrow', { live: true, columns: 70 });
    for (const text of out.split('\n')) expect(text.length).toBeLessThanOrEqual(70);
  });
  it('status --wait ends when all is well, or after its duration', async () => {
    expect((await world.kronos('status --wait 10m')).status).toBe(0);
    const nobody = { OS_NATS__SERVERS: 'nats://127.0.0.1:1' };
    const from = performance.now();
    expect((await world.kronos('status --wait 1.5s', { env: nobody })).status).toBe(1);
    expect(performance.now() - from).toBeGreaterThan(1500);
    expect(await world.kronos('status --wait soon')).toMatchObject({
      status: 2,
      err: expect.stringContaining('--wait'),
    });
  });
  it('status as JSON', async () => {
    const { out } = await world.kronos('status --json');
    const status = JSON.parse(out);
    expect(status.aggregates.map((of: { aggregate: string }) => of.aggregate)).toEqual(['gpu', 'general', 'web eu/1']);
    expect(status).toMatchObject({
      well: expect.any(Boolean),
      time: expect.stringMatching(/Z$/),
      alarms: expect.any(Array),
    });
  });
  it.each(['aggregates', 'hosts', 'vms', 'tasks --ended', 'plans --since all', 'quarantine list', 'top --once'])(
    '%s fits into 60 columns, with every host by a name of its own',
    async (line) => {
      const { out } = await world.kronos(line, { live: true, columns: 60 });
      expect(out.split('\n').filter((text) => text.length > 60)).toEqual([]);
      const whole = await world.kronos(line, { live: true, columns: 200 });
      const hosts = (text: string) => new Set(text.match(/\S*compute-\d+/g)).size;
      expect(hosts(out)).toBe(hosts(whole.out));
    },
  );
  it('a plan in 60 columns has both hosts of each step whole, and its reasons below', async () => {
    const [plan] = JSON.parse((await world.kronos('plans --since all -o json')).out) as { id: string }[];
    const { out } = await world.kronos(`plan show ${plan?.id}`, { live: true, columns: 60 });
    expect(out).toMatch(/^ +1 +vm-\S+ +gpu-compute-\d +gpu-compute-\d .*\n {4}\S/m);
    expect(out).toContain('hosts before and after:');
  });
  it('plans', () => golden('plans --since all'));
  it('plans of one aggregate as JSON', async () => {
    const { out } = await world.kronos('plans --since all -a gpu --json');
    expect(JSON.parse(out).every((plan: { aggregate: string }) => plan.aggregate === 'gpu')).toBe(true);
  });
  it.each([
    'aggregates',
    'hosts -a gpu',
    'vms -a gpu -o wide',
    'tasks --ended -a gpu',
    'top --once',
    '__complete hosts',
    '__complete aggregates',
    'vms --host gpu-compute-9',
    'headroom -a gpu',
    'advise -a gpu --since all',
  ])('%s', async (line) => {
    await golden(line);
  });
  it('top draws over its picture until it is interrupted', async () => {
    const stop = new AbortController();
    const { out } = await world.kronos('top -a general --interval 1', {
      live: true,
      interrupted: stop.signal,
      nowMs: () => {
        if (world.operation.events.length > 0) setImmediate(() => stop.abort());
        return Date.parse('2026-01-05T01:00:00Z');
      },
    });
    expect(out.startsWith('\u001b[2Kgeneral  ')).toBe(true);
    expect(out).toMatch(/general-compute-\d {2}cpu [#.]+ +\d+%/);
  });
  it('completion names the plans of the last day', async () => {
    const { out } = await world.kronos('plans --since 1d --json');
    // A shell takes names with other characters apart.
    const ids = (JSON.parse(out) as { id: string }[]).flatMap(({ id }) => (id.includes('=') ? [] : [id]));
    expect(ids.length).toBeGreaterThan(0);
    expect((await world.kronos('__complete plans')).out.trimEnd().split('\n')).toEqual(ids.toSorted());
  });
  it('completion names nothing, and fails not, where the system cannot be asked', async () => {
    const said = await world.kronos('__complete hosts -c /nonexistent/kronos.conf');
    expect(said).toEqual({ status: 0, out: '', err: '' });
  });
  it('lists are cut to their filters', async () => {
    const all = JSON.parse((await world.kronos('vms -a gpu -o json')).out) as { host: string; name: string }[];
    const [first] = all;
    const of = JSON.parse((await world.kronos(`vms -a gpu --host ${first?.host} -o json`)).out) as typeof all;
    expect(of).toEqual(all.filter(({ host }) => host === first?.host));
    expect(of.length).toBeLessThan(all.length);
    const one = JSON.parse((await world.kronos(`vms -a gpu --vm ${first?.name} -o json`)).out) as typeof all;
    expect(one).toEqual(all.filter(({ name }) => name === first?.name));
    type Host = { host: string };
    const onHost = JSON.parse((await world.kronos(`hosts --vm ${first?.name} -o json`)).out) as Host[];
    expect(onHost.map(({ host }) => host)).toEqual([first?.host]);
    const named = JSON.parse((await world.kronos(`hosts --host ${first?.host} -o json`)).out) as Host[];
    expect(named).toEqual(onHost);
    for (const list of ['hosts', 'vms'])
      expect(await world.kronos(`${list} --vm nobody -o json`)).toMatchObject({
        status: 2,
        err: expect.stringContaining('no VM "nobody" in the newest snapshots'),
      });
    const tasks = JSON.parse((await world.kronos('tasks --ended -o json')).out) as { serverName: string }[];
    const name = tasks[0]?.serverName ?? '';
    const its = JSON.parse((await world.kronos(`tasks --ended --vm ${name} -o json`)).out) as typeof tasks;
    expect(its).toEqual(tasks.filter(({ serverName }) => serverName === name));
  });
  it('fit', async () => {
    const { status, out } = await world.kronos('fit --vcpus 1 --ram 1024 -a gpu -o json');
    const [{ now, moves, hosts }] = JSON.parse(out);
    expect([status, now > 0, moves]).toEqual([0, true, []]);
    expect(hosts.reduce((sum: number, { slots }: { slots: number }) => sum + slots, 0)).toBe(now);
    const much = await world.kronos(`fit --vcpus 1 --ram 1024 --count ${now + 100_000} -a gpu`);
    expect([much.status, much.out]).toEqual([1, expect.stringContaining(`${now} of ${now + 100_000} fit now`)]);
    const { err } = await world.kronos('fit --flavor nothing -a gpu');
    expect(err).toContain('no VM of the newest snapshots has the flavor "nothing"');
    expect((await world.kronos('fit -a gpu')).err).toContain('the size of the VMs is missing');
  });
  it('are of several aggregates, separated by commas; status too', async () => {
    const [once, twice] = await Promise.all([world.kronos('hosts -a gpu'), world.kronos('hosts -a gpu,gpu')]);
    expect(twice).toEqual(once);
    expect((await world.kronos('hosts -a gpu,nope')).err).toContain('"nope" is not an aggregate in scope');
    expect((await world.kronos('hosts -a gpu,')).err).toContain('"gpu," is not a list of names');
    expect((await world.kronos('status -a gpu')).out).toMatch(/^Kronos, only gpu: /);
    expect((await world.kronos('status -a nope')).err).toContain('"nope" is not an aggregate in scope');
  });
  it('asks for the aggregate that was probably meant', async () => {
    const { status, err } = await world.kronos('hosts -a gpuu');
    expect([status, err]).toEqual([2, expect.stringContaining('Did you mean "gpu"?')]);
  });

  it('plan show', () => golden(`plan show ${anyPlan().id}`, 'plan-show'));
  it('JSON wherever it is asked for', async () => {
    const lines = [
      ['status'],
      ['plans', '--since', 'all'],
      ['plan', 'show', anyPlan().id],
      ['quarantine', 'list'],
      ['replay', '-a', 'gpu'],
      ['replay', '-a', 'gpu', '--what-if'],
    ];
    for (const line of lines) {
      const { out } = await world.kronos([...line, '--json']);
      expect(() => JSON.parse(out), line.join(' ')).not.toThrow();
    }
  });
  it('plan show of a plan that is not there', () => golden('plan show nope'));
  it('tap', () => golden('tap plans results controls --since all --end', 'tap'));
  it('tap, filtered', () => golden('tap --since all --end --type failed', 'tap-failed'));
  it('tap of a type that there is not', () => golden('tap results --since all --end --type faild', 'tap-no-type'));
  it('tap of one VM', () => golden(`tap --since all --end --vm ${anyPlan().steps[0]?.serverName}`, 'tap-vm'));
  it('tap says that there is nothing, and since when', async () => {
    await golden('tap alarms --since 1h --end', 'tap-alarms');
    expect((await world.kronos('tap alarms --since all --end')).out).toBe('No alarm is stored.\n');
    expect((await world.kronos('tap results --since all --end --vm nobody')).out).toBe(
      'No message that matches is stored.\n',
    );
    expect((await world.kronos('tap alarms --since 1h --end -o json')).out).toBe('');
  });
  it('tap -o json is one message a line', async () => {
    const { out } = await world.kronos('tap results --since all --end -o json');
    const lines = out
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text));
    expect(lines.length).toBe(
      world.operation.events.filter(
        ({ event }) => event.type.startsWith('migration.') && !/cancelled|aborted/.test(event.type),
      ).length,
    );
    expect(lines[0]).toMatchObject({
      subject: expect.stringContaining('kronos.results.'),
      sequence: expect.any(Number),
      data: {},
    });
  });
  it('tap follows until it is interrupted', async () => {
    const stop = new AbortController();
    const tapping = world.kronos('tap controls', { interrupted: stop.signal });
    await world.kronos('evaluate -a gpu --wait 0');
    stop.abort();
    expect((await tapping).status).toBe(0);
  });
});

describe('understanding', () => {
  it('replay: every decision identical', () => golden('replay'));
  it('replay: a what-if with a chart', async () => {
    await golden(
      ['replay', '-a', 'gpu', '--set', 'engine.cooldown=0', '--moves', '--chart', join(scratch, 'chart.svg')],
      'replay-what-if',
    );
    expect(await readFile(join(scratch, 'chart.svg'), 'utf8')).toContain('engine.cooldown=0 (simulated)');
  });
  it('replay as JSON', async () => {
    const verified = JSON.parse((await world.kronos('replay --json')).out);
    expect(verified).toMatchObject({ mode: 'verify', totals: { different: 0, identicalShare: 1, ok: true } });
    const simulated = JSON.parse((await world.kronos('replay --what-if --json')).out);
    expect(simulated).toMatchObject({ mode: 'whatIf', simulated: true });
    expect(simulated.totals).toHaveLength(3);
  });
  it('replay: allocation policies, on snapshots that were taken without them', async () => {
    const file = fileURLToPath(new URL('../../../deploy/policies/allocation.yaml', import.meta.url));
    const simulated = JSON.parse((await world.kronos(['replay', '-a', 'gpu', '--policies', file, '--json'])).out);
    expect(simulated).toMatchObject({ mode: 'whatIf', simulated: true });
    expect(Object.keys(simulated.cycles[0].simulated.imbalance)).toEqual(['ram', 'vcpu']);
  });
  it('replay: an option that decisions do not read', () => golden('replay --set nats.user=x'));
  it('replay: a strict what-if', () => golden('replay --what-if --strict'));
  it('record, replay and explain a directory', async () => {
    const to = join(scratch, 'case');
    const { out } = await golden(['record', '--to', to, '--since', 'all'], 'record');
    expect(out).toContain(` and ${await world.log.lastSequence(streamNames.log)} events of the log into`);
    await golden(['replay', to], 'replay-directory');
    await golden(['record', '--to', to, '--since', 'all'], 'record-again');
    const secret = join(scratch, 'anonymous');
    await golden(['record', '-a', 'gpu', '--to', secret, '--since', 'all', '--anonymize'], 'record-anonymize');
    await golden(['replay', secret], 'replay-anonymous');
  });
  it('record without a scorer says so', () => golden('record -a gpu --wait 0.2s', 'record-no-scorer'));
  it('explain cycle', () => golden(`explain cycle -a gpu --in ${scratch}/case`, 'explain-cycle'));
  it('explain cycle of a past moment says first what happened then', async () => {
    const { out } = await golden(
      ['explain', 'cycle', '-a', 'gpu', '--at', '2026-01-05T00:16:00Z', '--in', `${scratch}/case`],
      'explain-cycle-at',
    );
    expect(out).toMatch(/^At .* (nothing moved|ran: \d+ of \d+ moves were done|was released)/m);
  });
  it('explain plan', () => golden(`explain plan ${anyPlan().id} --in ${scratch}/case`, 'explain-plan'));
  it('explain one step', () => golden(`explain plan ${anyPlan().id} --step 1 --in ${scratch}/case`, 'explain-step'));
  it('explain vm', () => golden(`explain vm ${anyPlan().steps[0]?.serverName} --in ${scratch}/case`, 'explain-vm'));
  it('explain vm takes the beginning of a uuid', async () => {
    const servers = world.operation.snapshots.findLast((s) => s.aggregate === 'gpu')?.servers ?? [];
    const [{ id, name } = { id: '', name: '' }] = servers;
    const explain = (vm: string) => world.kronos(`explain vm ${vm} -a gpu --in ${scratch}/case`);
    expect(await explain(id.slice(0, -1))).toMatchObject({
      status: 2,
      err: expect.stringContaining('VMs begin with'),
    });
    expect(id.slice(0, -1)).not.toBe('');
    expect(await explain(id.toUpperCase())).toEqual(await explain(name));
  });
  it('explain calls positions assumed that are assumed', async () => {
    const { events, snapshots } = world.operation;
    const found = events.flatMap(({ event }) => {
      if (event.type !== 'cycle.decided') return [];
      const state = aggregateState(
        fold(events.filter(({ sequence }) => sequence <= event.data.basis)),
        event.aggregate,
      );
      const snapshot = snapshots.find(({ id }) => id === event.data.snapshotId);
      const there = (task: TaskFacts) =>
        snapshot?.servers.some(({ id, host }) => id === task.step.serverId && host === task.step.from);
      return inFlight(state).flatMap((task) => (there(task) ? [{ event, task }] : []));
    })[0];
    if (found === undefined) throw new Error('nothing was in flight');
    const { event, task } = found;
    const explain = (what: string) =>
      world.kronos(`explain ${what} --at ${event.data.snapshotTime} -a ${event.aggregate} --in ${scratch}/case`);
    const { serverName, from } = task.step;
    expect((await explain(`vm ${serverName}`)).out).toMatch(
      new RegExp(
        `${serverName} \\(.*\\) on ${from}, assumed on ${task.destination} by task ${task.id}, (not )?started`,
      ),
    );
    expect((await explain(`host ${from}`)).out).toContain(
      `${serverName} is here, assumed on ${task.destination} by task`,
    );
    expect((await explain('cycle')).out).toContain('All figures assume that the released move');
  });
  it('explain as JSON', async () => {
    const [step] = anyPlan().steps;
    for (const what of [
      ['plan', anyPlan().id],
      ['vm', step?.serverName ?? ''],
      ['host', step?.from ?? ''],
      ['cycle', '-a', 'gpu'],
    ]) {
      const { out } = await world.kronos(['explain', ...what, '--in', `${scratch}/case`, '--json']);
      expect(() => JSON.parse(out), what.join(' ')).not.toThrow();
    }
  });
  it('explain host', () => golden(`explain host ${anyPlan().steps[0]?.from} --in ${scratch}/case`, 'explain-host'));
  it('a recording that was changed is named with the place, and the status is 1', async () => {
    const path = join(scratch, 'case', 'log.jsonl');
    const whole = await readFile(path, 'utf8');
    const lines = whole.trimEnd().split('\n');
    const dropped = lines.findIndex((line) => line.includes('"migration.started"'));
    await writeFile(path, `${lines.toSpliced(dropped, 1).join('\n')}\n`);
    const said = await world.kronos(['replay', join(scratch, 'case')]);
    expect(said).toMatchObject({
      status: 1,
      err: expect.stringMatching(`log.jsonl:${dropped + 1}: event \\d+ followed`),
    });
    expect((await world.kronos(['replay', join(scratch, 'case'), '--what-if'])).status).toBe(1);
    await writeFile(path, whole);
    expect((await world.kronos(['replay', join(scratch, 'case')])).status).toBe(0);
  });
  it('explain what is not there', () => golden(`explain vm nope --in ${scratch}/case`, 'explain-nope'));
  it.each([
    ['host gpu-compute-12', 'gpu-compute-1'],
    ['vm vm-0-55', 'vm-0-5'],
  ])('explain %s names what was probably meant', async (line, meant) => {
    const { status, err } = await world.kronos(`explain ${line} --in ${scratch}/case`);
    expect([status, err]).toEqual([2, expect.stringContaining(`Did you mean "${meant}`)]);
  });
  it('explain without the snapshot gives what the log holds, and says so', () =>
    golden(`explain plan ${anyPlan().id}`, 'explain-log-only'));
});

describe('acting', () => {
  it('needs the name of the aggregate where there are several', () => golden('pause'));
  it('does not know another aggregate', () => golden('pause -a gpu2', 'pause_gpu2'));
  it('pause, status and resume', async () => {
    await golden('pause -a gpu -m maintenance', 'pause-gpu');
    await golden('pause -a gpu', 'pause-again');
    await golden('pause --all');
    await golden('resume -a gpu', 'resume-gpu');
    await golden('resume --all');
    await golden('resume -a gpu', 'resume-again');
  });
  it('quarantine', async () => {
    const server = world.operation.snapshots.findLast((s) => s.aggregate === 'gpu')?.servers[0];
    await golden(`quarantine add ${server?.name} --for 2h -m backup`, 'quarantine-add');
    await golden('quarantine list -a gpu', 'quarantine-list');
    expect(JSON.parse((await world.kronos('quarantine list -a gpu --json')).out)).toContainEqual(
      expect.objectContaining({ serverId: server?.id, cause: 'operator', until: expect.stringMatching(/Z$/) }),
    );
    const added = JSON.parse((await world.kronos(`quarantine add ${server?.name} --for 2h --json`)).out);
    expect(added).toMatchObject({ serverId: server?.id, serverName: server?.name });
    await golden(`quarantine release ${server?.id}`, 'quarantine-release');
    await golden(`quarantine release ${server?.name}`, 'quarantine-release-again');
    await golden('quarantine add nobody');
  });
  it('quarantine of a VM that is not there names the one that was probably meant', async () => {
    const server = world.operation.snapshots.findLast((s) => s.aggregate === 'gpu')?.servers[0];
    const { err } = await world.kronos(`quarantine add ${server?.name}x`);
    expect(err).toContain('Did you mean "');
  });
  it('answers what is over with what it was', async () => {
    await golden('approve nope');
    await golden(`approve ${last('plan.approved').data.planId}`, 'approve-late');
    await golden('cancel nope');
  });
  it('says in JSON what it did', async () => {
    const { out } = await world.kronos('pause -a general --json');
    expect(JSON.parse(out)).toMatchObject({
      command: 'aggregate.paused',
      aggregate: 'general',
      effect: 'done',
      by: 'ada@desk',
    });
    await world.kronos('resume -a general');
  });
  it('pause of an aggregate whose name has a space names what ends it', async () => {
    const { out } = await world.kronos(['pause', '-a', 'web eu/1']);
    expect(out).toContain('; kronos resume -a "web eu/1" ends it\n');
    await world.kronos(['resume', '-a', 'web eu/1']);
  });
  it('evaluate: asks, and says when nobody answers', () => golden('evaluate -a gpu --wait 0.2s', 'evaluate-nobody'));
  it('ids of snapshots asked for are those of the scorer', () => expect(commandSnapshotId('gpu', 'x')).toBe('gpu-c-x'));
});
