import { readFileSync } from 'node:fs';

const deployed = readFileSync(new URL('../../deploy/nats/accounts.conf', import.meta.url), 'utf8');
const names = [...deployed.matchAll(/user: "(\w+)"/g)].map(([, name = '']) => name);
/** A user with all permissions. Only tests have it. */
export const WATCHER = 'watcher';

/** The NATS users of deploy/nats with passwords of their own, and {@link WATCHER} for the test itself: options of `startNatsServer`. */
export const users = {
  config: deployed.replace('users: [', `users: [\n      { user: "${WATCHER}", password: "of ${WATCHER}" }`),
  env: Object.fromEntries(names.map((name) => [`KRONOS_NATS_${name.toUpperCase()}_PASSWORD`, `"of ${name}"`])),
};

/** Overrides of [nats] for a command or a service under one of the users. */
export const as = (user: string) => ({ OS_NATS__USER: user, OS_NATS__PASSWORD: `of ${user}` });

/** The same for `connectEventLog`. */
export const login = (user: string) => ({ name: user, user, password: `of ${user}` });
