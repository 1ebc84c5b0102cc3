import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type FoundBinary, startNatsServer } from '@kronos/eventlog/testing';
import { expect, onTestFinished } from 'vitest';
import { openStage } from '../../libs/cli/src/demo/stage.ts';
import { as, users, WATCHER } from '../e2e/users.ts';
import { released, SHORT_SEARCH, settled, watch } from '../e2e/world.ts';

const byPassword = { ...users, as };

const VIOLATION = /(Publish|Subscription) Violation.*/gi;

/** From which minor version of nats-server 2 on acks can take the longer form of subjects. */
const LONGER_FROM = 14;
const isLonger = ({ version }: FoundBinary): boolean => Number(version.split('.')[1]) >= LONGER_FROM;

export const titleOf = (server: FoundBinary): string =>
  `each service does all its work under its own user, and people what is theirs: nats-server ${server.version}${isLonger(server) ? ', with the longer ack subjects' : ''}`;

/** The users of a server, {@link WATCHER} among them: options of `startNatsServer`, and the options of [nats] as one of them. */
type Users = {
  readonly config: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly as: (user: string) => Readonly<Record<string, string>>;
};

/** A whole run on one server with the accounts of `deploy/nats`, and what people may do there. */
export async function runUnderUsers(server: FoundBinary, { config, env, as }: Users = byPassword): Promise<void> {
  const nats = await startNatsServer({
    server,
    config: `${config}\n${isLonger(server) ? 'feature_flags { js_ack_fc_v2: true }' : ''}`,
    ...(env === undefined ? {} : { env }),
  });
  onTestFinished(() => nats.stop());
  const kronos = await openStage({
    seed: 7,
    speed: 20,
    say: () => undefined,
    onExit: () => undefined,
    nats: async () => ({ urls: [nats.url], stop: async () => undefined }),
    env: (of) => ({ ...SHORT_SEARCH, ...as(of === 'provision' ? WATCHER : of) }),
  });
  onTestFinished(() => kronos.close());
  const cli = (user: string, ...args: string[]) =>
    new Promise<{ status: number; text: string }>((resolve) => {
      const main = fileURLToPath(new URL('../../libs/cli/bin/kronos.js', import.meta.url));
      const env = { ...process.env, ...as(user), NO_COLOR: '1' };
      execFile(process.execPath, [main, ...args, '--config', kronos.configFile], { env }, (error, out, err) =>
        resolve({ status: error === null ? 0 : Number(error.code), text: out + err }),
      );
    });
  expect(await cli('provisioner', 'provision')).toMatchObject({ status: 0 });

  const log = watch(kronos);
  await log.until('a balanced cloud', settled, 120_000);
  expect(released(log.events).length).toBeGreaterThan(5);
  expect(nats.logText().match(VIOLATION) ?? []).toEqual([]);

  const tapped = await cli('viewer', 'tap', '--since', '1h', '--end');
  expect(tapped.status, tapped.text).toBe(0);
  expect(tapped.text).toContain('general');
  expect((await cli('viewer', 'plans')).status).toBe(0);
  const status = await cli('viewer', 'status', '--json');
  expect(JSON.parse(status.text)).toBeTypeOf('object');
  expect(nats.logText().match(VIOLATION) ?? []).toEqual([]);

  const asked = (type: string) => log.events.some((event) => event.type === type);
  for (const command of ['pause', 'evaluate', 'record']) {
    const refused = await cli('viewer', command);
    expect(refused.status, command).not.toBe(0);
    expect(refused.text, command).toMatch(/permission/i);
  }
  expect((await cli('viewer', 'provision')).text).toMatch(/permission/i);
  const refusals = nats.logText().length;
  const paused = await cli('operator', 'pause');
  expect(paused.status, paused.text).toBe(0);
  await log.until('the pause on the log', () => asked('aggregate.paused'));
  expect(log.events.filter((event) => event.by.service === 'operator')).toHaveLength(1);
  expect(nats.logText().slice(refusals).match(VIOLATION) ?? []).toEqual([]);
}
