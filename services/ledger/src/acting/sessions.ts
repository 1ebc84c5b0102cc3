import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A logged-in person. Sessions are in memory only. */
export type PersonSession = {
  /** `ada@Default`: what commands of this person state as `by`. */
  readonly person: string;
  /** Had a role of those who may skip unreadable events at the log-in. */
  readonly custodian: boolean;
  /** Their token of Keystone, to ask again whether they may still act, and to end it. */
  readonly token: string;
  /** To be sent in a header with every request that changes something. */
  readonly csrf: string;
  /** Monotonic, in ms: the end of the token. */
  readonly endsAt: number;
};

/** A new login; `lifeMs`: the remaining lifetime of the token. */
type Opened = Pick<PersonSession, 'person' | 'custodian' | 'token'> & { readonly lifeMs: number };

type Kept = PersonSession & { usedAt: number };

export type SessionLimits = { readonly most: number; readonly idleMs: number };

const BYTES = 32;
const secret = (): string => randomBytes(BYTES).toString('base64url');
const hashed = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * The sessions of the console. A session ends with its token, when the person logs out, and after an idle time. Where there
 * are as many as allowed, the one that was unused for longest ends.
 *
 * @param monotonic in ms
 */
export function createSessions({ most, idleMs }: SessionLimits, monotonic: () => number) {
  /** By the hash of the cookie's value. */
  const sessions = new Map<string, Kept>();
  const keyOf = (cookie: string): string => hashed(cookie).toString('hex');
  const over = ({ endsAt, usedAt }: Kept): boolean => monotonic() >= Math.min(endsAt, usedAt + idleMs);
  const clean = (): void => {
    for (const [key, session] of sessions) if (over(session)) sessions.delete(key);
  };

  return {
    /** @returns the session, and the value of its cookie */
    open({ person, custodian, token, lifeMs }: Opened): { readonly cookie: string; readonly session: PersonSession } {
      clean();
      // They stand in the order of their last use.
      const [longest] = sessions.keys();
      if (sessions.size >= most && longest !== undefined) sessions.delete(longest);
      const cookie = secret();
      const endsAt = monotonic() + lifeMs;
      const session: Kept = { person, custodian, token, csrf: secret(), endsAt, usedAt: monotonic() };
      sessions.set(keyOf(cookie), session);
      return { cookie, session };
    },
    /** The session of a cookie, which counts as used now; null: there is none, or it has ended. */
    use(cookie: string | null): PersonSession | null {
      clean();
      const key = cookie === null ? '' : keyOf(cookie);
      const session = sessions.get(key);
      if (session === undefined) return null;
      sessions.delete(key);
      session.usedAt = monotonic();
      sessions.set(key, session);
      return session;
    },
    end(session: PersonSession): void {
      for (const [key, one] of sessions) if (one === session) sessions.delete(key);
    },
    /** Milliseconds until a session ends if it is not used. */
    leftMs: (session: PersonSession): number =>
      Math.max(0, Math.min(session.endsAt, monotonic() + idleMs) - monotonic()),
    get size(): number {
      return sessions.size;
    },
  };
}

/** Compares in constant time, so that the time does not reveal the length of the equal part. */
export const sameSecret = (a: string, b: string): boolean => timingSafeEqual(hashed(a), hashed(b));
