import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openArchive } from '@kronos/archive';
import { defaultStorageLimits } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { operate } from '@kronos/replay/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kronos } from './world.ts';

/** The command under its own NATS user, which may publish nothing but the commands of people, with no service running. */
describe("the operator's NATS user", () => {
  const operation = operate({
    seed: 4,
    cycles: 3,
    aggregates: ['gpu', 'general'],
    hosts: 3,
    vmsPerHost: 3,
    planner: 'greedy',
  });
  let server: NatsServer;
  let directory = '';
  const config = (user: string) => join(directory, `${user}.conf`);
  const run = (user: string, line: string) =>
    kronos(line.split(' '), { env: { KRONOS_CONFIG: config(user) }, nowMs: operation.events.at(-1)?.storedAt ?? 0 });

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kronos-operator-'));
    // The configuration that is deployed.
    const accounts = await readFile(new URL('../../../deploy/nats/accounts.conf', import.meta.url), 'utf8');
    const variables = [...accounts.matchAll(/\$(KRONOS_NATS_([A-Z]+)_PASSWORD)/g)];
    const env = Object.fromEntries(variables.map(([, name, user]) => [name, `pw-${user?.toLowerCase()}`]));
    server = await startNatsServer({ config: accounts, env });
    const as = (user: string, name: string) =>
      connectEventLog({ servers: [server.url], name, user, password: `pw-${user}` });
    const provisioner = await as('provisioner', 'provisioner');
    await provisioner.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu', 'general'] });
    await provisioner.close();
    const scorer = await as('scorer', 'scorer');
    for (const snapshot of operation.snapshots)
      await scorer.putSnapshot(snapshot, { by: { service: 'scorer', instance: 's', version: '0' }, causationId: null });
    await scorer.close();
    const planner = await as('planner', 'planner');
    for (const { event } of operation.events)
      if (['planner.configured', 'cycle.decided'].includes(event.type)) await planner.append(event as never);
    await planner.close();
    for (const user of ['operator', 'viewer', 'restorer'])
      await writeFile(
        config(user),
        `[engine]\naggregates = gpu, general\nmax_clock_skew = 1000000000\n[nats]\nrequest_timeout = 2\nservers = ${server.url}\nuser = ${user}\npassword = pw-${user}\n[http]\nscorer_port = 0\nplanner_port = 0\nexecutor_port = 0\nledger_port = 0\n`,
      );
  });
  afterAll(async () => {
    await server?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it.each([
    'pause -a gpu',
    'resume -a gpu',
    'pause --all',
    'resume --all',
    'evaluate --all --wait 0',
    'quarantine add vm-0-1 --for 1h',
    'quarantine list',
    'quarantine release vm-0-1',
    'drain gpu-compute-1 --yes -r upgrade',
    'undrain gpu-compute-1',
    'host release gpu-compute-1',
    'plans --since all',
    'tap --since all --end',
    'tap snapshots plans migrations results controls ledger inventory --since all --end',
    'replay -a gpu',
  ])('may do: %s', async (line) => {
    const { status, err } = await run('operator', line);
    expect({ status, err }).toEqual({ status: 0, err: '' });
  });

  it('may look at everything for status', async () => {
    const { out, err } = await run('operator', 'status --json');
    expect(err).toBe('');
    expect(JSON.parse(out).streams).toHaveLength(4);
  });

  it('may not restore an archive: that takes a user who may publish what services publish', async () => {
    const ledger = await connectEventLog({
      servers: [server.url],
      name: 'ledger',
      user: 'ledger',
      password: 'pw-ledger',
    });
    const archive = await openArchive(join(directory, 'archive'), { maxFileBytes: 1e9 });
    for await (const event of ledger.copy()) await archive.write([event]);
    const last = archive.last;
    if (last === null) throw new Error('the log is empty');
    await archive.write([{ ...last, sequence: last.sequence + 1, subject: 'kronos.plans.gpu', headers: {} }]);
    await archive.close();
    const { status, err } = await run('operator', `archive restore ${join(directory, 'archive')}`);
    expect(status).toBe(1);
    expect(err).toMatch(/may not publish on kronos\.plans\.gpu/);
    expect(await ledger.lastSequence('KRONOS_LOG')).toBe(last.sequence);
    await ledger.close();
  });

  it('is another one than the viewer, who sees and asks for nothing', async () => {
    expect((await run('viewer', 'plans --since all')).status).toBe(0);
    const { status, err } = await run('viewer', 'pause -a gpu');
    expect(status).toBe(1);
    expect(err).toContain('may not publish on kronos.controls.gpu');
  });

  it('listens for answers under a prefix that the viewer may not use, and the error names the option', async () => {
    const file = join(directory, 'wrong.conf');
    const text = await readFile(config('viewer'), 'utf8');
    await writeFile(file, text.replace('user = viewer', 'user = viewer\ninbox_prefix = _INBOX_operator'));
    const { status, err } = await kronos(['plans'], { env: { KRONOS_CONFIG: file }, nowMs: 0 });
    expect(status).toBe(1);
    expect(err).toMatch(/Permissions Violation for Subscription to "_INBOX_operator\..*set \[nats\] inbox_prefix/);
  });

  it('is another one than the restorer, who puts an archive back', async () => {
    const { status, out } = await run('restorer', `archive restore ${join(directory, 'archive')} --json`);
    expect(status).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ restored: 1 });
    expect(server.logText()).not.toMatch(/Violation.*"restorer"/);
  });

  describe('with a wrong clock', () => {
    const strict = { KRONOS_CONFIG: '', OS_ENGINE__MAX_CLOCK_SKEW: '5' };
    const at = (line: string, byMs: number) =>
      kronos(line.split(' '), { env: { ...strict, KRONOS_CONFIG: config('operator') }, nowMs: Date.now() + byMs });

    it.each([
      ['slow', -25 * 60_000, 'behind'],
      ['fast', 25 * 60_000, 'ahead of'],
    ])('a %s one: a command that starts something is refused, and nothing is asked', async (_, byMs, how) => {
      const log = await connectEventLog({
        servers: [server.url],
        name: 'viewer',
        user: 'viewer',
        password: 'pw-viewer',
      });
      const before = await log.lastSequence('KRONOS_LOG');
      const said = await at('resume -a gpu', byMs);
      expect(said.status).not.toBe(0);
      expect(said.err).toMatch(
        new RegExp(`the clock of this machine is \\d+\\.\\d s ${how} the NATS server's.*the command was not sent`),
      );
      expect(await log.lastSequence('KRONOS_LOG')).toBe(before);
      await log.close();
    });

    it('a command that only stops something is given, with a warning', async () => {
      const said = await at('pause -a gpu', -25 * 60_000);
      expect(said.status).toBe(0);
      expect(said.err).toContain('behind');
      expect((await at('resume -a gpu', 0)).status).toBe(0);
    });

    it('of no more than max_clock_skew, nothing is said', async () => {
      const said = await at('pause -a general', -2_000);
      expect([said.status, said.err]).toEqual([0, '']);
      expect((await at('resume -a general', 0)).err).toBe('');
    });
  });
});
