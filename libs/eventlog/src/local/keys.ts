import { nkeys } from '@nats-io/transport-node';

/** An nkey of a NATS user: the seed is its secret. */
export type UserKey = { readonly seed: string; readonly publicKey: string };

/** A new key, or that of a seed. @throws when the text is no seed of a user */
export function userKey(seed?: string): UserKey {
  const pair = seed === undefined ? nkeys.createUser() : nkeys.fromSeed(new TextEncoder().encode(seed.trim()));
  return { seed: new TextDecoder().decode(pair.getSeed()), publicKey: pair.getPublicKey() };
}
