import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { architecture, version } from './files.ts';
import { boot, debianTree, type Machine, noMachines } from './machine.ts';
import { bring, command, firstPlan } from './systemd.ts';
import { transcript } from './transcript.ts';

const none = noMachines();
if (none !== null) console.warn(`skipped: the Debian package is not installed; ${none}`);

const name = `kronos_${version}_${architecture}.deb`;
const SERVICES = ['scorer', 'planner', 'executor', 'ledger'];

describe.skipIf(none !== null)(
  'the Debian package on a system with systemd, by the commands of docs/install.md',
  () => {
    const directory = none === null ? mkdtempSync(join(tmpdir(), 'kronos-debian-')) : '';
    let machine: Machine;
    const said = transcript();

    beforeAll(async () => {
      machine = await boot(await debianTree(), join(directory, 'system'));
      await bring(name, machine);
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
      const pages = await machine.run('ls /usr/share/man/man1');
      expect([pages.includes('kronos-status.1.gz'), pages.includes('__')]).toEqual([true, false]);
      expect(await machine.run('stat -c %A%U /etc/kronos/secrets/*')).toMatch(/^(drwx------root\n){5}$/);
    });

    it('the commands lead to a first plan, which moves nothing', async () => {
      await firstPlan(machine, said, '/usr/lib/kronos/bin/node /usr/lib/kronos/libs/simcloud/src/main.js');
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
