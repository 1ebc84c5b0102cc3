import { describe, expect, it } from 'vitest';
import type { Reader } from './option.ts';
import { resolveConfig } from './resolve.ts';
import { shownOptions } from './shown.ts';
import { sinkOrigin } from './sinks.ts';

const SCOPE = '[engine]\naggregates = gpu\n';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const files: Readonly<Record<string, string>> = { '/url': ' https://chat.example/hooks/T0/B0 \n', '/empty': '\n' };

const resolve = (text: string, role: Reader = 'ledger', env: Record<string, string> = {}) =>
  resolveConfig({
    file: 'k.conf',
    text: SCOPE + text,
    env,
    role,
    readFile: (path) => {
      const content = files[path];
      if (content === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
      return content;
    },
  });
const told = (text: string, role: Reader = 'ledger', env: Record<string, string> = {}): string[] =>
  resolve(text, role, env).problems.map((p) => `${p.line} ${p.option}: ${p.problem} | ${p.remedy}`);

describe('[notify:NAME]', () => {
  it('sets a sink with its defaults, and any number of them', () => {
    const { config, problems } = resolve(
      `[notify:chat]\nurl = https://chat.example/x\nformat = slack\n[notify:hook]\nurl = http://h/\nsecret = ${SECRET}\ntypes = migration.*, alarm.*\naggregates = gpu\n`,
    );
    expect(problems).toEqual([]);
    expect([...config.sinks.keys()]).toEqual(['chat', 'hook']);
    expect(config.sinks.get('chat')).toMatchObject({
      format: 'slack',
      types: ['alarm.*'],
      aggregates: ['*'],
      timeout: 10,
    });
    expect(config.sinks.get('hook')).toMatchObject({ format: 'cloudevents', types: ['migration.*', 'alarm.*'] });
    expect(config.sinks.get('hook')?.secret?.reveal()).toBe(SECRET);
    expect(resolve('').config.sinks.size).toBe(0);
  });

  it('reads secrets from files where it sends, and nowhere else', () => {
    const text = '[notify:chat]\nurl_file = /url\n';
    expect(resolve(text).config.sinks.get('chat')?.url?.reveal()).toBe('https://chat.example/hooks/T0/B0');
    const missing = '[notify:chat]\nurl_file = /nothing\n';
    for (const role of ['cli', 'provision', 'planner'] as const) expect(told(missing, role)).toEqual([]);
    expect(told(missing)).toEqual([
      '4 [notify:chat] url_file: names the file /nothing, which cannot be read: there is no such file | Create it, or let this service read it.',
    ]);
    expect(told('[notify:chat]\nurl_file = /empty\n')[0]).toContain('4 [notify:chat] url_file: names the file /empty');
  });

  it('shows of a sink no secret: of its URL the origin alone', () => {
    const { config } = resolve(
      `[notify:hook]\nurl = https://chat.example/hooks/T0/B0-token?x=1\nsecret = ${SECRET}\nauthorization = Bearer abcdef\n`,
    );
    const shown = shownOptions(config, 'ledger');
    expect(shown['notify:hook.url']).toBe('https://chat.example');
    const text = JSON.stringify(shown) + JSON.stringify(config) + String(config.sinks.get('hook')?.url);
    for (const secret of ['B0-token', SECRET.slice(6), 'abcdef']) expect(text).not.toContain(secret);
    expect(Object.keys(shownOptions(config, 'scorer')).some((key) => key.startsWith('notify'))).toBe(false);
    expect(sinkOrigin({ url: null })).toBeNull();
  });

  it.each([
    ['[notify:a b]\nurl = http://h', '3 [notify:a b]: is no name for a sink'],
    ['[notify:]\nurl = http://h', '3 [notify:]: is no name for a sink'],
    ['[notify:x]', '3 [notify:x] url: is not set'],
    ['[notify:x]\nurl = ftp://h', '4 [notify:x] url: is a URL of another kind'],
    [
      '[notify:x]\nurl = https://u:p@h',
      '4 [notify:x] url: holds a user or a password | Take them out and set authorization.',
    ],
    ['[notify:x]\nurl = h', '4 [notify:x] url: is no URL'],
    ['[notify:x]\nurl = http://h\nurl_file = /url', '5 [notify:x] url_file: and url are both set'],
    ['[notify:x]\nurl = http://h\nsecret = c2hvcnQ=', '5 [notify:x] secret: has 5 bytes, and must have 24 to 64'],
    ['[notify:x]\nurl = http://h\nsecret = !!', '5 [notify:x] secret: is no base64'],
    ['[notify:x]\nurl = http://h\ntype = a', '5 [notify:x] type: is not an option of a sink | Did you mean types?'],
    ['[notify:x]\nurl = http://h\nformat = mail', '5 [notify:x] format:'],
    [
      '[notify:x]\nurl = http://h\nformat = alertmanager\ntypes = alarm.*, migration.failed',
      '6 [notify:x] types: has migration.failed, and an Alertmanager takes alarms only',
    ],
    [
      `[notify:x]\nurl = http://h\nformat = slack\nsecret = ${SECRET}`,
      '6 [notify:x] secret: signs notifications, and format = slack has no signature',
    ],
    [
      '[notify:x]\nurl = http://h\ntypes = alarm.*, migration.done',
      '5 [notify:x] types: has migration.done, which matches no type of event and no alarm | Did you mean migration',
    ],
    ['[notify:x]\nurl = http://h\ntypes = plans.*', 'The events are cycle.decided, plan.proposed,'],
    ['[notify:x]\nurl = http://h\ntypes = alarm.log-ful', 'Did you mean alarm.log-full? The alarms are alarm.nats-'],
    // Its messages are on another stream; and an info is no alarm.
    ['[notify:x]\nurl = http://h\ntypes = snapshot.taken', 'matches no type of event'],
    ['[notify:x]\nurl = http://h\ntypes = alarm.replica-lost', 'matches no type of event'],
  ])('refuses %s', (text, problem) => {
    const problems = told(`${text}\n`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
    expect(problems[0]).not.toMatch(/c2hvcnQ|u:p/);
  });

  it('is not set from the environment, and has an end', () => {
    expect(told('', 'ledger', { 'OS_NOTIFY:CHAT__URL': 'http://h' })[0]).toContain('names a sink');
    const many = Array.from({ length: 65 }, (_, i) => `[notify:s${i}]\nurl = http://h\n`).join('');
    expect(told(many)).toEqual([expect.stringContaining('there are 65 sections [notify:NAME]')]);
  });
});
