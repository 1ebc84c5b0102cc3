import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testLog } from '@kronos/projections/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CliWorld, openCliWorld } from './world.ts';

const id = (n: number): string => `d0000000-0000-4000-8000-00000000000${n}`;
const NAMES = new Map([1, 2, 3, 4, 5].map((n) => [id(n), `vm-0-${n}`]));

let world: CliWorld;
let scratch = '';
beforeAll(async () => {
  world = await openCliWorld({ seed: 4, cycles: 12, hosts: 4, vmsPerHost: 4, planner: 'greedy' }, '', (endMs) => {
    const log = testLog('gpu', endMs + 1000);
    const move = (n: number) => ({ serverId: id(n), from: 'gpu-compute-1', to: 'general-compute-1' });
    const gone = { serverId: 'd0000000-0000-4000-8000-00000000dead', from: 'gpu-compute-1', to: 'general-compute-1' };
    const propose = (...moves: Parameters<typeof log.cellsProposed>[0]) =>
      log.cellsProposed(moves, {
        to: 'general',
        change: (data) => ({
          ...data,
          steps: data.steps.map((step) => ({
            ...step,
            serverName: NAMES.get(step.serverId) ?? 'deleted',
            why: { code: 'cell', text: 'An operator asked for the VM to leave its cell.' },
            ...(step.cell === undefined ? {} : { cell: { ...step.cell, confirm: 'manual' as const } }),
          })),
          refused: [
            {
              serverId: id(4),
              serverName: 'vm-0-4',
              host: 'gpu-compute-1',
              reason: { code: 'cell-volumes', text: 'The cells do not share its volumes.', detail: { volumes: 2 } },
            },
          ],
        }),
      });
    const first = propose(move(1));
    log.pass(10).rejected(first, null, 'bob');
    const second = log.pass(10) && propose(move(1), move(2), gone);
    log.pass(10).approved(second);
    for (const n of [1, 2, 3]) {
      const task = `${second}-s${n}`;
      log.pass(1).started({ task });
      log.pass(60).verifying({ task });
      log.pass(60).verified({ task });
    }
    log.pass(5).settleAsked('revert', `${second}-s1`, 'bob');
    log.pass(1).settleRequested('revert', { task: `${second}-s1` }, 'operator');
    log.pass(20).failed({
      task: `${second}-s1`,
      errorType: 'Cancelled',
      reason: { code: 'operator', text: 'an operator asked for the revert' },
    });
    log.failed({
      task: `${second}-s3`,
      errorType: 'Cancelled',
      reason: { code: 'server-gone', text: 'Nova does not know the server any more' },
    });
    log.pass(5);
    propose(move(3));
    return log.events;
  });
  scratch = await mkdtemp(join(tmpdir(), 'kronos-cli-cells-'));
  expect((await world.kronos(['record', '--to', join(scratch, 'case'), '--since', 'all'])).err).toBe('');
});
afterAll(async () => {
  await world?.close();
  await rm(scratch, { recursive: true, force: true });
});

const golden = async (line: string, name: string): Promise<void> => {
  const said = await world.kronos(`${line} --in ${join(scratch, 'case')}`);
  const text = `$ kronos ${line}\n${said.out}${said.err === '' ? '' : `--- errors\n${said.err}`}--- status ${said.status}\n`;
  await expect(text).toMatchFileSnapshot(`golden/outputs/${name}.golden.txt`);
};

it('explain vm tells a move between cells that was rejected, and one that a person had reverted', () =>
  golden('explain vm vm-0-1', 'explain-vm-cells-reverted'));
it('explain vm tells a move that waits for a person', () => golden('explain vm vm-0-2', 'explain-vm-cells-verified'));
it('explain vm tells a plan that waits for approval', () => golden('explain vm vm-0-3', 'explain-vm-cells-waits'));
it('explain vm tells why a VM cannot leave its cell', () => golden('explain vm vm-0-4', 'explain-vm-cells-stays'));
it('explain vm tells the move of a VM that is in no snapshot', () =>
  golden(`explain vm deleted`, 'explain-vm-cells-gone'));
it('explain vm as JSON has the plans between cells', async () => {
  const { out } = await world.kronos(`explain vm vm-0-2 --json`);
  expect(JSON.parse(out)).toMatchObject({ cells: [{ state: 'waitsForPerson', step: { to: 'general-compute-1' } }] });
});
it('completion names the plans between cells beside the others', async () => {
  const plans = JSON.parse((await world.kronos('plans --since 1d --json')).out) as { id: string; kind: string }[];
  const between = plans.flatMap(({ id, kind }) => (kind === 'cells' ? [id] : []));
  expect(between).toHaveLength(3);
  const named = (await world.kronos('__complete plans')).out.trimEnd().split('\n');
  expect(named).toEqual(expect.arrayContaining(between));
  expect(named.length).toBeGreaterThan(between.length);
});
