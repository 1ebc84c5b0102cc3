import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { errorText } from '@kronos/contracts';
import { EvidenceKey } from './errors.ts';
import type { Signature } from './format.ts';

/** The 12 bytes before the raw key in DER (RFC 8410). */
const PREFIX = 12;

function keyIn(file: string, read: (pem: string) => KeyObject): KeyObject {
  let key: KeyObject;
  try {
    key = read(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new EvidenceKey(file, `is no key: ${errorText(error)}`);
  }
  if (key.asymmetricKeyType !== 'ed25519') throw new EvidenceKey(file, 'is no Ed25519 key');
  return key;
}

const rawOf = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(PREFIX);

/** @param file PEM of a private key @throws EvidenceKey */
export function signed(manifestText: string, file: string): Signature {
  const key = keyIn(file, createPrivateKey);
  return {
    algorithm: 'Ed25519',
    publicKey: rawOf(createPublicKey(key)).toString('base64'),
    signature: sign(null, Buffer.from(manifestText), key).toString('base64'),
  };
}

/** The raw public key in a PEM file, base64. @throws EvidenceKey */
export const publicKeyIn = (file: string): string => rawOf(keyIn(file, createPublicKey)).toString('base64');

/** Whether the signature is of this text, by the key that it names. */
export function isSigned(manifestText: string, { publicKey, signature }: Signature): boolean {
  try {
    const x = Buffer.from(publicKey, 'base64').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return verify(null, Buffer.from(manifestText), key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
}
