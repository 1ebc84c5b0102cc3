import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNatsServer } from '@kronos/eventlog/testing';
import { demoCloud, demoPolicies, startSim } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEMO_AGGREGATE, demoConfig } from '../../libs/cli/src/demo/files.ts';
import { type Outcome, runKronos as run, runHere } from './command.ts';

const PASSWORD = 'wrong-horse-battery';
const services = ['scorer', 'planner', 'executor', 'ledger'];

describe('what goes wrong at the start gives one clear error', () => {
  let directory: string;
  let file: string;
  let nats: Awaited<ReturnType<typeof startNatsServer>>;
  let sim: Awaited<ReturnType<typeof startSim>>;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kronos-errors-'));
    nats = await startNatsServer();
    sim = await startSim({ scenario: demoCloud() });
    const policiesFile = join(directory, 'policies.yaml');
    file = join(directory, 'kronos.conf');
    await writeFile(policiesFile, demoPolicies);
    await writeFile(
      file,
      demoConfig({
        natsUrl: nats.url,
        keystoneUrl: sim.urls.identity,
        prometheusUrl: sim.urls.prometheus,
        policiesFile,
      }),
    );
  });
  afterAll(async () => {
    await sim.close();
    await nats.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** Expects one message with the place and the remedy, without a stack trace and without secrets. */
  const isClear = ({ status, text }: Outcome, ...parts: (string | RegExp)[]) => {
    expect(status, text).toBe(1);
    for (const part of parts) expect(text).toMatch(part);
    expect(text).not.toMatch(/^\s+at .*\(?(file:|node:|\/)/m);
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toContain('secret');
  };

  it('services refuse to start on streams that are not provisioned, and say how to mend it', async () => {
    const started = services.map((service) => run([service, '--config', file]));
    for (const outcome of await Promise.all(started)) isClear(outcome, 'KRONOS_LOG', 'kronos provision');
  });

  it('config check reports what is not provisioned', async () => {
    isClear(await run(['config', 'check', '--config', file]), /failed +NATS/, 'kronos provision');
  });

  describe('once provisioned', () => {
    beforeAll(async () => {
      expect((await runHere(['provision', '--config', file])).status).toBe(0);
    });

    it('config check passes, and says what each query returned', async () => {
      const { status, text } = await runHere(['config', 'check', '--config', file]);
      expect(status, text).toBe(0);
      expect(text).toContain('policy cpu imbalance_query: 12 series');
      expect(text).toMatch(
        new RegExp(`aggregate ${DEMO_AGGREGATE}: 12 hosts, 11 may be destinations; 147 of 150 VMs may move`),
      );
      // A warning on nats-server 2.9 alone.
      expect(text).toMatch(/(warning|skipped) +NATS durability/);
      expect(text).toMatch(/All checks passed\.|No check failed, with 1 warning\./);
    });

    it('config check finds a sink whose durables are missing', async () => {
      const withSink = join(directory, 'sink.conf');
      await writeFile(withSink, `${await readFile(file, 'utf8')}\n[notify:chat]\nurl = http://127.0.0.1:9/\n`);
      isClear(
        await runHere(['config', 'check', '--config', withSink]),
        /failed +NATS: .*not set up/,
        'KRONOS_LOG/notify-chat is missing',
        'kronos provision',
      );
    });

    it('config check fails for policies under which nothing can ever move, and names the label that would do', async () => {
      const bad = join(directory, 'labels.yaml');
      const wrong = demoPolicies.replaceAll(/^(\s+-? ?)vm_profile_label: .*$/gm, '$1vm_profile_label: vm');
      await writeFile(bad, wrong.replaceAll(/^\s+vm_profile_fallback: .*\n/gm, ''));
      const { status, text } = await runHere(['config', 'check', '--config', file, '--json'], {
        OS_ENGINE__POLICIES_FILE: bad,
      });
      expect(status, text).toBe(1);
      const { ok, findings } = JSON.parse(text) as { ok: boolean; findings: Record<string, unknown>[] };
      expect(ok).toBe(false);
      expect(findings.find((one) => one.code === 'vm-label')).toMatchObject({
        state: 'failed',
        remedy: expect.stringMatching(/^Set vm_profile_label: \w+ and vm_profile_label_type: nova_\w+/),
      });
      expect(findings.find((one) => one.code === 'nothing-can-move')).toMatchObject({
        what: `aggregate ${DEMO_AGGREGATE}`,
      });
    });

    it('an option that does not exist: file, line, and the nearest name', async () => {
      const bad = join(directory, 'bad.conf');
      await writeFile(bad, '[engine]\naggregates = general\ncooldwon = 5\n');
      isClear(await run(['planner', '--config', bad]), /bad\.conf:3/, 'cooldwon', 'cooldown');
    });

    it('wrong policies: file, line, policy and field', async () => {
      const bad = join(directory, 'bad.yaml');
      await writeFile(bad, demoPolicies.replace('threshold: 0.2\n', 'threshold: high\n'));
      isClear(
        await run(['scorer', '--config', file], { OS_ENGINE__POLICIES_FILE: bad }),
        /bad\.yaml:\d+/,
        'cpu',
        'threshold',
      );
    });

    it('NATS that does not answer', async () => {
      // They run side by side, because each tries for ten seconds.
      const started = services.map((service) =>
        run([service, '--config', file], { OS_NATS__SERVERS: 'nats://127.0.0.1:9' }),
      );
      for (const outcome of await Promise.all(started))
        isClear(outcome, 'no NATS server answers at 127.0.0.1:9', /\[nats\] servers/);
    });

    it('config check: an account of NATS that may store too little, and one without JetStream', async () => {
      const accounts = `accounts {
        SMALL { jetstream: { max_mem: 8MB, max_file: 64MB }, users: [{ user: small, password: ${PASSWORD} }] }
        NONE { users: [{ user: none, password: ${PASSWORD} }] }
      }`;
      const limited = await startNatsServer({ config: accounts });
      try {
        const as = (user: string) =>
          runHere(['config', 'check', '--config', file], {
            OS_NATS__SERVERS: limited.url,
            OS_NATS__USER: user,
            OS_NATS__PASSWORD: PASSWORD,
          });
        isClear(
          await as('small'),
          /failed +NATS storage/,
          /may store 64 MiB in files, and needs [\d.]+ GiB/,
          'max_file',
        );
        isClear(
          await as('none'),
          /failed +NATS: .*JetStream/,
          /skipped +NATS storage: Kronos stores at most [\d.]+ GiB/,
        );
      } finally {
        await limited.stop();
      }
    });

    it.each([
      [
        'Prometheus that does not answer',
        { OS_PROMETHEUS__URL: 'http://127.0.0.1:9', OS_PROMETHEUS__MAX_RETRIES: '0' },
        /failed +Prometheus/,
        /127\.0\.0\.1:9/,
      ],
      [
        'Keystone that does not answer',
        { OS_NOVA__AUTH_URL: 'http://127.0.0.1:9/v3', OS_NOVA__CONNECT_RETRIES: '0' },
        /failed +Keystone/,
        /127\.0\.0\.1:9/,
      ],
      ['a wrong password', { OS_NOVA__PASSWORD: PASSWORD }, /failed +Keystone/, /user admin/],
      ['an unknown aggregate', { OS_ENGINE__AGGREGATES: 'generol' }, /failed +aggregate generol/, /general/],
    ])('config check: %s', async (_, env, ...parts) => {
      isClear(
        await runHere(['config', 'check', '--config', file], env as Record<string, string>),
        ...(parts as RegExp[]),
      );
    });
  });
});
