import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { Changed, confirmedCommand, foreseen } from './command.ts';
import { cookieOf, setCookie } from './cookie.ts';
import { cameFrom } from './origin.ts';
import { rateLimit } from './rateLimit.ts';
import { createSessions } from './sessions.ts';

/** A clock that stands still until it is set. */
function watch() {
  let now = 0;
  const set = (ms: number): void => {
    now = ms;
  };
  return Object.assign(() => now, { set });
}

const token = (person: string, lifeMs: number) => ({ person, custodian: false, token: `token-of-${person}`, lifeMs });

describe('a session', () => {
  const opened = (most = 2) => {
    const clock = watch();
    const sessions = createSessions({ most, idleMs: 1_000 }, clock);
    return { clock, sessions, ada: sessions.open(token('ada', 5_000)) };
  };

  it('is found by what its cookie holds, and by nothing else', () => {
    const { sessions, ada } = opened();
    expect(sessions.use(ada.cookie)).toBe(ada.session);
    for (const cookie of [null, '', ada.session.csrf, `${ada.cookie}A`]) expect(sessions.use(cookie)).toBeNull();
    expect(new Set([ada.cookie, ada.session.csrf, sessions.open(token('ada', 1)).cookie]).size).toBe(3);
  });

  it('ends when it is idle, with its token although it is used, and when the person logs out', () => {
    const { clock, sessions, ada } = opened();
    clock.set(999);
    expect(sessions.use(ada.cookie)).not.toBeNull();
    clock.set(1_998);
    expect(sessions.leftMs(ada.session)).toBe(1_000);
    expect(sessions.use(ada.cookie)).not.toBeNull();
    clock.set(2_998);
    expect(sessions.use(ada.cookie)).toBeNull();
    const grace = sessions.open(token('grace', 1_500));
    clock.set(3_900);
    expect(sessions.use(grace.cookie)).not.toBeNull();
    expect(sessions.leftMs(grace.session)).toBe(598);
    clock.set(4_498);
    expect(sessions.use(grace.cookie)).toBeNull();
    const out = sessions.open(token('ada', 5_000));
    sessions.end(out.session);
    expect(sessions.use(out.cookie)).toBeNull();
  });

  it('takes the place of the one that was unused for longest, where there are as many as allowed', () => {
    const { sessions, ada } = opened();
    const grace = sessions.open(token('grace', 5_000));
    sessions.use(ada.cookie);
    sessions.open(token('carol', 5_000));
    expect(sessions.use(grace.cookie)).toBeNull();
    expect(sessions.use(ada.cookie)).not.toBeNull();
  });
});

describe('a rate limit', () => {
  it('allows `most` acts per key within the time, and says when the next one is allowed', () => {
    const clock = watch();
    const limit = rateLimit({ most: 2, perMs: 1_000 }, clock);
    expect([limit('a'), limit('a')]).toEqual([0, 0]);
    clock.set(400);
    expect([limit('a'), limit('b')]).toEqual([600, 0]);
    clock.set(1_000);
    expect(limit('a')).toBe(0);
  });

  it('keeps a bounded number of keys, and refuses what it cannot count', () => {
    const clock = watch();
    const limit = rateLimit({ most: 1, perMs: 1_000 }, clock);
    for (let i = 0; i < 1_000; i++) limit(`key-${i}`);
    expect(limit('one more')).toBe(1_000);
    clock.set(1_000);
    expect(limit('one more')).toBe(0);
  });
});

describe('a request comes from', () => {
  const came = (origin: string | undefined, host = 'kronos.example.org', site?: string, allowed: string[] = []) =>
    cameFrom(
      { host, ...(origin === undefined ? {} : { origin }), ...(site ? { 'sec-fetch-site': site } : {}) },
      allowed,
    );

  it.each([
    ['https://kronos.example.org', 'kronos.example.org', true],
    ['https://kronos.example.org:8443', 'kronos.example.org:8443', true],
    ['http://localhost:9784', 'localhost:9784', false],
    ['http://[::1]:9784', '[::1]:9784', false],
  ])('the console itself: %s to %s', (origin, host, tls) => {
    expect(came(origin, host, 'same-origin')).toEqual({ ok: true, tls });
  });

  it('the console behind a proxy that sends another Host, if the name is allowed', () => {
    expect(came('https://kronos.example.org', '10.0.0.5:9784')).toMatchObject({ ok: false });
    expect(came('https://kronos.example.org', '10.0.0.5:9784', undefined, ['kronos.example.org.'])).toMatchObject({
      ok: true,
    });
  });

  it.each([
    [undefined, 'kronos.example.org'],
    ['null', 'kronos.example.org'],
    ['https://kronos.example.org/', 'kronos.example.org'],
    ['https://evil.example.com', 'kronos.example.org'],
    ['https://kronos.example.org.evil.com', 'kronos.example.org'],
    ['https://kronos.example.org:444', 'kronos.example.org'],
    ['http://localhost:1', 'localhost:9784'],
    ['http://kronos.example.org', 'kronos.example.org'],
  ])('elsewhere, or without TLS: %s to %s', (origin, host) => {
    expect(came(origin, host)).toMatchObject({ ok: false });
  });

  it('a page of the same site that is not the console', () => {
    for (const site of ['same-site', 'cross-site', 'none'])
      expect(came('http://localhost:9784', 'localhost:9784', site)).toMatchObject({ ok: false });
  });

  it('a browser with a session, by its cookie', () => {
    expect(cookieOf({ cookie: 'a=b; kronos-session=abc; c=d' })).toBe('abc');
    expect(cookieOf({ cookie: 'kronos-session=abc; __Host-kronos-session=def' })).toBe('def');
    expect(cookieOf({ cookie: 'x-kronos-session=abc' })).toBeNull();
    expect(cookieOf({})).toBeNull();
    expect(setCookie(null, { tls: true })).toContain('Max-Age=0');
  });
});

describe('what is confirmed', () => {
  const asking = (nowMs: number) => ({ commandId: 'c', person: 'ada', version: '1', nowMs, comment: 'why' });
  const proposed = () => {
    const log = testLog();
    log.configured({ approval: 'manual' });
    const planId = log.pass(10).proposed([
      { serverId: 'vm1', from: 'h1', to: 'h2' },
      { serverId: 'vm2', from: 'h1', to: 'h2' },
    ]);
    return { log, command: { command: 'approve' as const, planId, steps: null } };
  };
  const read = ({ log, command }: ReturnType<typeof proposed>) =>
    foreseen(log.fold(), ['gpu'], command, asking(log.nowMs));

  it('is what is done, whatever else happens meanwhile', () => {
    const world = proposed();
    const { digest, planId } = read(world);
    expect(planId).toBe(world.command.planId);
    world.log.pass(5).quarantined('vm9');
    const later = { ...asking(world.log.nowMs), commandId: 'other', comment: null };
    expect(confirmedCommand(world.log.fold(), ['gpu'], { command: world.command, digest }, later)).toMatchObject({
      type: 'plan.approved',
      data: { commandId: 'other', planId },
    });
  });

  it('is a conflict when the plan, or the command, is another one', () => {
    const world = proposed();
    const { digest } = read(world);
    const now = asking(world.log.nowMs);
    expect(() =>
      confirmedCommand(world.log.fold(), ['gpu'], { command: { ...world.command, steps: [1] }, digest }, now),
    ).toThrow(Changed);
    world.log.rejected(world.command.planId, [1]);
    expect(() => confirmedCommand(world.log.fold(), ['gpu'], { command: world.command, digest }, now)).toThrow(Changed);
  });

  it('is a plan between cells as it was asked for: of the aggregate or of one host, and nothing moves before its approval', () => {
    const { log } = proposed();
    const all = { flavorMap: {}, servers: null, project: null, limit: null };
    const plan = (more: object) =>
      foreseen(
        log.fold(),
        ['gpu', 'new'],
        { command: 'cellsPlan', aggregate: 'gpu', host: null, to: 'new', ...all, ...more },
        asking(log.nowMs),
      );
    const whole = plan({});
    expect(whole.event).toMatchObject({
      type: 'cells.moveAsked',
      aggregate: 'gpu',
      data: { from: ['gpu'], to: 'new' },
    });
    expect(whole.says).toEqual([
      'requested a plan between cells to new',
      'of all hosts of gpu: every server',
      'at most as many moves as a plan holds; the servers are off during their moves',
      'The plan waits for approval. Nothing moves before that.',
    ]);
    const part = plan({ host: 'h1', servers: ['vm1'], project: 'p', limit: 1, flavorMap: { old: 'new.small' } });
    expect(part.event.data).toMatchObject({ from: ['h1'], servers: ['vm1'], limit: 1 });
    expect(part.says).toEqual(
      expect.arrayContaining([
        'of h1: vm1 of the project p',
        'flavor old becomes new.small: these servers are resized',
        'at most 1 move; the servers are off during their moves',
      ]),
    );
    expect(part.digest).not.toBe(whole.digest);
  });

  it('is a skip of the events that were read: others in the range are a conflict', () => {
    const log = testLog();
    log.configured();
    log.unreadable();
    const command = { command: 'skip' as const, sequence: 2, through: 9, force: true };
    const skip = (more: object = {}) => foreseen(log.fold(), ['gpu'], { ...command, ...more }, asking(log.nowMs));
    const read = skip();
    expect(read.event).toMatchObject({ type: 'event.skipped', by: { service: 'custodian' }, aggregate: 'gpu' });
    expect(read.says[0]).toContain('skipped 1 unreadable event');
    expect(read.says[1]).toContain('event 2 (migration.teleported)');
    expect(() => skip({ force: false })).toThrow('a newer version of Kronos may read event 2');
    expect(() => skip({ sequence: 3 })).toThrow('no unreadable event');
    log.unreadable();
    const now = asking(log.nowMs);
    expect(() => confirmedCommand(log.fold(), ['gpu'], { command, digest: read.digest }, now)).toThrow(Changed);
    expect(confirmedCommand(log.fold(), ['gpu'], { command, digest: skip().digest }, now).type).toBe('event.skipped');
  });

  it('is refused when it is too late', () => {
    const world = proposed();
    const { digest } = read(world);
    world.log.pass(1_000);
    expect(read(world).effect).toBe('refused');
    const late = () =>
      confirmedCommand(world.log.fold(), ['gpu'], { command: world.command, digest }, asking(world.log.nowMs));
    expect(late).toThrow('expired');
  });
});
