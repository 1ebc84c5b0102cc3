import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A user with all permissions. Only tests have it. */
export const WATCHER = 'watcher';

/**
 * The NATS users of deploy/nats with passwords of their own, and {@link WATCHER} for the test itself: options of `startNatsServer`.
 *
 * @param root of the checkout whose users they are
 */
export function usersOf(root: string): { readonly config: string; readonly env: Readonly<Record<string, string>> } {
  const deployed = readFileSync(join(root, 'deploy/nats/accounts.conf'), 'utf8');
  const names = [...deployed.matchAll(/user: "(\w+)"/g)].map(([, name = '']) => name);
  return {
    config: deployed.replace('users: [', `users: [\n      { user: "${WATCHER}", password: "of ${WATCHER}" }`),
    env: Object.fromEntries(names.map((name) => [`KRONOS_NATS_${name.toUpperCase()}_PASSWORD`, `"of ${name}"`])),
  };
}
export const users = usersOf(fileURLToPath(new URL('../../', import.meta.url)));

/** Overrides of [nats] for a command or a service under one of the users. */
export const as = (user: string) => ({ OS_NATS__USER: user, OS_NATS__PASSWORD: `of ${user}` });

/** The same for `connectEventLog`. */
export const login = (user: string) => ({ name: user, user, password: `of ${user}` });
