import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Played, serve } from '@kronos/http/testing';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kronos } from './world.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const TOKEN = 'B0-hidden-token';

describe('kronos notify test', () => {
  let directory = '';
  let file = '';
  let receiver: Played;
  let status = 200;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kronos-notify-'));
    file = join(directory, 'kronos.conf');
    // A receiver that says what it was sent.
    receiver = await serve(({ path, headers, body }, response) => {
      response.writeHead(status).end(`${path} ${headers.authorization} ${body}`);
    });
    await writeFile(
      file,
      `[engine]\naggregates = gpu\n[notify:hook]\nurl = ${receiver.url}/hooks/${TOKEN}\nsecret = ${SECRET}\nauthorization = Bearer own-token-1\n[notify:gone]\nurl = http://127.0.0.1:1/${TOKEN}\nformat = slack\n`,
    );
  });
  afterAll(async () => {
    await receiver.close();
    await rm(directory, { recursive: true, force: true });
  });
  const test = async (args: string) =>
    kronos(`notify test ${args}`.split(' '), { env: { KRONOS_CONFIG: file }, nowMs: Date.now() });

  it('sends one signed message and shows the answer without secrets', async () => {
    status = 200;
    const { status: code, out, err } = await test('hook');
    expect(code, err).toBe(0);
    expect(out).toContain(`delivered: [notify:hook] (cloudevents) at ${receiver.url}: the answer is 200`);
    for (const secret of ['own-token-1', SECRET.slice(6)]) expect(out + err).not.toContain(secret);
    const { body, headers } = receiver.seen.at(-1) ?? { body: '', headers: {} };
    expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toMatchObject({
      type: 'kronos.notify.test.v1',
    });
    expect(headers.authorization).toBe('Bearer own-token-1');
  });

  it('ends with 1 when the receiver does not take it, follows no redirect, and says why', async () => {
    status = 302;
    const before = receiver.seen.length;
    const refused = await test('hook -o json');
    expect(refused.status).toBe(1);
    expect(JSON.parse(refused.out)).toMatchObject({
      sink: 'hook',
      delivered: false,
      status: 302,
      remedy: expect.stringContaining('Set url of [notify:hook]'),
    });
    expect(receiver.seen.length).toBe(before + 1);
    const gone = await test('gone');
    expect(gone.status).toBe(1);
    expect(gone.out).toMatch(
      /^not delivered: \[notify:gone\] \(slack\) at http:\/\/127\.0\.0\.1:1: no answer: .*ECONNREFUSED/,
    );
    expect(gone.out).toContain('Check url and ca_cert of [notify:gone]');
    expect(gone.out).not.toContain(TOKEN);
  });

  it('names the sinks there are', async () => {
    const { status: code, err } = await test('hok');
    expect(code).not.toBe(0);
    expect(err).toContain('there is no sink "hok"');
    expect(err).toContain('Did you mean "hook"?');
  });
});
