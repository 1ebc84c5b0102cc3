/** Extra specs of flavors: those that anyone may have made up are left out. */
import type { Names } from './names.ts';

/** Extra specs of Nova's that decisions and people read; others may say anything. */
const KNOWN_SPEC = /^(hw|hw_video|os|quota|trait\d*|resources\d*|accel|pci_passthrough):/;
const PLAIN_VALUE =
  /^(true|false|yes|no|on|off|\d+(\.\d+)?|required|forbidden|shared|dedicated|isolate|prefer|require|any|large|small|\d\.\d)$/i;

/** The values that are replaced. */
export const replacedSpecs = (specs: Readonly<Record<string, string>>): string[] =>
  Object.entries(specs).flatMap(([key, value]) => (KNOWN_SPEC.test(key) && !PLAIN_VALUE.test(value) ? [value] : []));

export const anonymousSpecs = (names: Names, specs: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(specs).flatMap(([key, value]) =>
      KNOWN_SPEC.test(key) ? [[names.custom(key), PLAIN_VALUE.test(value) ? value : names.as('value', value)]] : [],
    ),
  );
