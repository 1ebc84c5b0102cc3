import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { version } from './files.ts';
import { boot, debianTree, type Machine, noMachines } from './machine.ts';
import { bring, command, firstPlan } from './systemd.ts';
import { transcript } from './transcript.ts';

const run = promisify(execFile);
const none = noMachines();
if (none !== null) console.warn(`skipped: the archive for hosts is not installed; ${none}`);

describe.skipIf(none !== null)(
  'the archive for hosts on a system with systemd, by the commands of docs/install.md',
  () => {
    const directory = none === null ? mkdtempSync(join(tmpdir(), 'kronos-host-')) : '';
    let machine: Machine;
    beforeAll(async () => {
      machine = await boot(await debianTree(), join(directory, 'system'));
      await bring(`kronos-host-${version}.tgz`, machine);
    });
    afterAll(async () => {
      await machine?.stop();
      rmSync(directory, { recursive: true, force: true });
    });

    it('leads to a first plan, which moves nothing', async () => {
      const [unpack = '', install = '', ...rest] = command('tar -xzf').trim().split('\n');
      const said = transcript();
      await said.typed(unpack, () => machine.run(unpack));
      // The system reaches no registry and has no npm: this one's works in its directory.
      await said.typed(install, async () => {
        const inside = install.replace('/opt/', `${machine.directory}/opt/`);
        return (await run('bash', ['-ec', inside], { maxBuffer: 2 ** 26 })).stdout;
      });
      // The Node of its distribution.
      await machine.run('ln -s /opt/kronos/node_modules/.bin/node /usr/local/bin/node');
      await said.typed(rest.join('\n'), () => machine.run(rest.join('\n')));
      await firstPlan(machine, said, '/opt/kronos/node_modules/.bin/node /opt/kronos/libs/simcloud/src/main.ts');
      const title = 'From the archive for hosts to the first plan';
      said.write({ name: 'host', title, how: 'npm run test:release -- host' });
    });
  },
);
