/** Extra specs of flavors: those that anyone may have made up are left out. Properties of images: those have made-up names. */
import type { Names } from './names.ts';

/** Extra specs of Nova's that decisions and people read; others may say anything. */
const KNOWN_SPEC = /^(hw|hw_video|os|quota|trait\d*|resources\d*|accel|pci_passthrough):/;
const PLAIN_VALUE =
  /^(true|false|yes|no|on|off|\d+(\.\d+)?|required|forbidden|shared|dedicated|isolate|prefer|require|any|large|small|user|host|deployment|\d\.\d)$/i;
/** Properties by which decisions distinguish servers, as `libs/facts` and `libs/rules` read them. */
const KNOWN_PROPERTY = /^(hw_tpm_version|hw_tpm_model|hw_mem_encryption|hw_cpu_model|trait\d*:.*)$/;

/** The values that are replaced. */
export const replacedSpecs = (specs: Readonly<Record<string, string>>): string[] =>
  Object.entries(specs).flatMap(([key, value]) => (KNOWN_SPEC.test(key) && !PLAIN_VALUE.test(value) ? [value] : []));

export const anonymousSpecs = (names: Names, specs: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(specs).flatMap(([key, value]) =>
      KNOWN_SPEC.test(key) ? [[names.custom(key), PLAIN_VALUE.test(value) ? value : names.as('value', value)]] : [],
    ),
  );

/** The names and values that are replaced. */
export const replacedProperties = (properties: Readonly<Record<string, string>>): string[] =>
  Object.entries(properties).flatMap(([key, value]) => [
    ...(KNOWN_PROPERTY.test(key) ? [] : [key]),
    ...(PLAIN_VALUE.test(value) ? [] : [value]),
  ]);

/** None is left out: two servers are of one shape only if they have the same ones. */
export const anonymousProperties = (
  names: Names,
  properties: Readonly<Record<string, string>>,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [
      KNOWN_PROPERTY.test(key) ? names.custom(key) : names.as('value', key),
      PLAIN_VALUE.test(value) ? value : names.as('value', value),
    ]),
  );
