/** What an installation of an earlier version leaves behind: the archive and the checkpoints of its ledger, and its configuration. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readArchive, verifyArchive } from '@kronos/archive';
import { foldLog } from '@kronos/checkpoints';
import { loadConfig } from '@kronos/config';
import { defaultStorageLimits, subject } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { bareConnection, startNatsServer } from '@kronos/eventlog/testing';
import { canonicalState, type LogState } from '@kronos/projections';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../histories');
const installations = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(join(root, entry.name, 'installed')))
  .map(({ name }) => name);

it('an installation of 0.1.0 is recorded', () => {
  expect(installations).toContain('0.1.0-planner-3');
});

describe.each(installations)('an installation of version %s', (version) => {
  const directory = join(root, version, 'installed');

  it('its archive is whole, and restored it leads to one state, from its checkpoints and from its first event', async () => {
    const { last } = await verifyArchive(join(directory, 'archive'));
    const server = await startNatsServer();
    const log = await connectEventLog({ servers: [server.url], name: 'test' });
    try {
      await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu', 'general', 'web eu/1'] });
      expect(await log.restore(readArchive(join(directory, 'archive')))).toEqual({ restored: last, skipped: 0 });
      const bare = await bareConnection(server.url);
      const names = readdirSync(join(directory, 'checkpoints'));
      for (const name of names) {
        const body = readFileSync(join(directory, 'checkpoints', name), 'utf8');
        const { aggregate } = JSON.parse(body) as { aggregate: string };
        await bare.request(subject('ledger', aggregate), body);
      }
      await bare.close();

      const skipped: string[] = [];
      let from: LogState | null = null;
      const read = async (checkpoints: boolean) => {
        const view = await foldLog(log, {
          checkpoints,
          onSkipped: ({ problem }) => skipped.push(problem),
          onCheckpoint: (checkpoint) => (from = checkpoint ?? from),
        });
        const { state } = view.at();
        await view.close();
        for (const [, aggregate] of state.aggregates) expect(aggregate.unreadables).toEqual([]);
        return canonicalState(state);
      };
      expect(await read(true)).toBe(await read(false));
      // A checkpoint of another fold is skipped by that name, and nothing else is wrong with it.
      if (from === null) expect(skipped).toEqual([expect.stringMatching(/fold/)]);
      else expect(skipped).toEqual([]);
    } finally {
      await log.close();
      await server.stop();
    }
  });

  it.each(['scorer', 'planner', 'executor', 'ledger'] as const)(
    'the %s takes its configuration, with every option set',
    (role) => {
      const file = join(directory, 'etc/kronos.conf');
      const text = readFileSync(file, 'utf8').replace(
        /^policies_file = .*$/m,
        `policies_file = ${join(directory, 'etc/policies.yaml')}`,
      );
      const env = {
        OS_ENGINE__AGGREGATES: 'gpu',
        OS_NOVA__AUTH_URL: 'http://keystone',
        OS_NOVA__USERNAME: 'kronos',
        OS_NOVA__PASSWORD: 'secret',
        OS_NOVA__PROJECT_NAME: 'kronos',
        OS_NOVA__USER_DOMAIN_ID: 'default',
        OS_NOVA__PROJECT_DOMAIN_ID: 'default',
        OS_PROMETHEUS__URL: 'http://prometheus',
      };
      const readFile = (path: string) => (path === file ? text : readFileSync(path, 'utf8'));
      const { config } = loadConfig({ file, env, role, readFile });
      expect(config.engine.aggregates).toEqual(['gpu']);
    },
  );
});
