import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findNatsServer } from '@kronos/eventlog/testing';
import { demoCloud, demoPolicies } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { architecture, releaseFiles, root } from './files.ts';
import { boot, debianTree, type Machine, noMachines } from './machine.ts';
import { transcript } from './transcript.ts';

const none = noMachines();
if (none !== null) console.warn(`skipped: the Debian package is not installed; ${none}`);

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const name = `kronos_${version}_${architecture}.deb`;
const section = /\n## systemd\n(.*?)\n## /s.exec(readFileSync(join(root, 'docs/install.md'), 'utf8'))?.[1] ?? '';
const blocks = [...section.matchAll(/^( *)```(\w*)\n(.*?)^ *```$/gms)].map(([, indent = '', language, text = '']) => ({
  language,
  text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
}));
/** The commands of the page, and its files, in their order. */
const commands = blocks.filter(({ language }) => language === '').map(({ text }) => text);
const [scorerEnv = '', executorEnv = ''] = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
const conf = blocks.find(({ language }) => language === 'ini')?.text ?? '';

/** The cloud of the demo, with the accounts that deploy/openstack/users makes. */
const cloud = {
  ...demoCloud(),
  users: [
    { name: 'kronos-scorer', password: 'of the scorer', roles: ['admin'], project: 'kronos' },
    { name: 'kronos-executor', password: 'of the executor', roles: ['admin'], project: 'kronos' },
  ],
  applicationCredentials: [{ id: 'c1', name: 'kronos', secret: 'of the credential', user: 'kronos-executor' }],
};
const CLOUD_PORT = 9780;
const SERVICES = ['scorer', 'planner', 'executor', 'ledger'];

describe.skipIf(none !== null)(
  'the Debian package on a system with systemd, by the commands of docs/install.md',
  () => {
    const directory = none === null ? mkdtempSync(join(tmpdir(), 'kronos-debian-')) : '';
    let machine: Machine;
    const command = (start: string): string => {
      const found = commands.find((text) => text.startsWith(start));
      if (found === undefined) throw new Error(`docs/install.md has no block that begins with ${start}`);
      return found.replaceAll('VERSION', version);
    };
    const put = (path: string, text: string) => writeFileSync(join(machine.directory, path), text);
    const said = transcript();
    const type = (start: string) => said.typed(command(start), () => machine.run(command(start)));
    const edit = (path: string, text: string) => {
      put(path, text);
      said.wrote(`/${path}`, text);
    };

    beforeAll(async () => {
      const tree = await debianTree();
      machine = await boot(tree, join(directory, 'system'));
      copyFileSync(join(releaseFiles(), name), join(machine.directory, 'root', name));
      const { path } = await findNatsServer('newest');
      copyFileSync(path, join(machine.directory, 'usr/local/bin/nats-server'));
    });
    afterAll(async () => {
      await machine?.stop();
      rmSync(directory, { recursive: true, force: true });
    });

    it('apt installs it, and nothing runs yet', async () => {
      const install = command('apt install').replace('apt install', 'apt-get install --yes');
      await said.typed(command('apt install'), () => machine.run(install));
      expect(await machine.run('kronos version')).toContain(`kronos ${version} `);
      expect(await machine.run('systemctl list-units --all --no-legend "kronos@*"')).toBe('');
      expect(await machine.run('dpkg --verify kronos')).toBe('');
      expect(await machine.run('stat -c %A%U /etc/kronos/secrets/*')).toMatch(/^(drwx------root\n){5}$/);
    });

    it('the commands lead to a first plan, which moves nothing', async () => {
      put('root/cloud.json', JSON.stringify(cloud));
      await machine.run(
        `systemd-run --unit cloud /usr/lib/kronos/bin/node /usr/lib/kronos/libs/simcloud/src/main.js --scenario ~/cloud.json --port ${CLOUD_PORT}`,
      );
      put('root/scorer.password', 'of the scorer');
      put('root/executor.secret', 'of the credential');
      await type('kronos keys');
      await type('mkdir -p /etc/nats');
      await type('cp scorer.password');
      edit('etc/kronos/scorer.env', scorerEnv);
      edit('etc/kronos/executor.env', executorEnv);
      const site = conf
        .replace('https://keystone.example.org:5000/v3', `http://127.0.0.1:${CLOUD_PORT}/identity/v3`)
        .replace('http://prometheus.example.org:9090', `http://127.0.0.1:${CLOUD_PORT}/prometheus`);
      edit('etc/kronos/kronos.conf', site);
      edit('etc/kronos/policies.yaml', demoPolicies);
      await type('systemctl start kronos-provision');
      const shown = await type('export OS_NATS__NKEY_SEED_FILE');
      expect(shown).toMatch(/general: planned \(\d+ moves, dry run\)/);
      expect(shown).toMatch(/dry run +The move lowers the combined imbalance/);
      expect(await machine.run('systemctl is-active kronos.target kronos@{scorer,planner,executor,ledger}')).toBe(
        'active\n'.repeat(5),
      );
      const title = 'From an empty Debian to the first plan';
      said.write({ name: 'debian', title, how: 'npm run test:release -- debian' });
    });

    it('each service is a user of its own, who reads neither the state nor the secrets of another', async () => {
      const owner = async (service: string) =>
        (await machine.run(`stat -c %u /proc/$(systemctl show -P MainPID kronos@${service})`)).trim();
      const users = await Promise.all(SERVICES.map(owner));
      expect(new Set(users).size).toBe(SERVICES.length);
      expect(users).not.toContain('0');
      for (const service of SERVICES)
        for (const [index, user] of users.entries()) {
          const places = [
            `/var/lib/private/kronos/${service}`,
            `/run/credentials/kronos@${service}.service/kronos_nats.nk`,
          ];
          for (const place of places) {
            const open = `setpriv --reuid ${user} --clear-groups --inh-caps=-all test -r ${place} && echo open || echo closed`;
            // Root alone enters /var/lib/private; a unit sees its own part of it elsewhere.
            const own = SERVICES[index] === service && place.startsWith('/run');
            expect(await machine.run(open), `${place} as ${SERVICES[index]}`).toBe(own ? 'open\n' : 'closed\n');
          }
          const uid = await machine.run(`stat -c '%u %a' /var/lib/private/kronos/${service}`);
          expect(uid).toBe(`${users[SERVICES.indexOf(service)]} 700\n`);
        }
    });

    it('removing it stops the services and keeps the configuration', async () => {
      await machine.run('apt-get remove --yes kronos');
      expect(await machine.run('pgrep -f /usr/lib/kronos/services || echo none')).toBe('none\n');
      expect(readdirSync(join(machine.directory, 'etc/kronos'))).toContain('kronos.conf');
    });

    it('a second installation goes on with it, and purging leaves the archive of the log alone', async () => {
      await machine.run(command('apt install').replace('apt install', 'apt-get install --yes'));
      await machine.run('systemctl start kronos@ledger && systemctl is-active kronos@ledger');
      await machine.run('apt-get purge --yes kronos');
      const left = await machine.run(
        'find / -xdev -iname "*kronos*" -not -path "/proc/*" -not -path "$HOME/*" -not -path "/run/*" -not -path "/tmp/*" -not -path "/var/lib/private/nats/*" | sort',
      );
      expect(left.trim().split('\n')).toEqual(['/var/lib/kronos', '/var/lib/private/kronos']);
    });
  },
);
