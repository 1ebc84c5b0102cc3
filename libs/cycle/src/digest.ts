import { createHash } from 'node:crypto';
import { canonicalJson } from '@kronos/contracts';

/** `sha256:<hex>` of the value's canonical JSON. @throws TypeError for what JSON cannot hold */
export const digest = (value: unknown): string =>
  `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;
