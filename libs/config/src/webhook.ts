import type { Parsed } from './kinds.ts';
import { Secret } from './secret.ts';

/** A secret of Standard Webhooks: 24 to 64 bytes in base64, usually behind `whsec_`. */
export function parseSigningSecret(raw: string): Parsed<Secret> {
  const remedy = 'Make one: echo whsec_$(openssl rand -base64 32)';
  const text = raw.replace(/^whsec_/, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return { ok: false, problem: 'is no base64', remedy };
  const { length } = Buffer.from(text, 'base64');
  if (length < 24 || length > 64) return { ok: false, problem: `has ${length} bytes, and must have 24 to 64`, remedy };
  return { ok: true, value: new Secret(raw) };
}

/** The URL of a receiver. It is a secret: that of an incoming webhook is all that its sender needs. */
export function parseSinkUrl(raw: string): Parsed<Secret> {
  const remedy = 'Write it as https://HOST/PATH.';
  if (!URL.canParse(raw) || /\s/.test(raw)) return { ok: false, problem: 'is no URL', remedy };
  const url = new URL(raw);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return { ok: false, problem: 'is a URL of another kind', remedy };
  if (url.username !== '' || url.password !== '')
    return { ok: false, problem: 'holds a user or a password', remedy: 'Take them out and set authorization.' };
  if (url.hash !== '') return { ok: false, problem: 'has a fragment', remedy: 'Take off what follows #.' };
  // An address alone is no secret: it is shown.
  return { ok: true, value: new Secret(raw, url.pathname === '/' && url.search === '' ? 'public' : 'hidden') };
}
