/** Numbers as people read them. Pure. */

/** A number for people: limited decimals, without trailing 0. */
export const figure = (value: number | null, decimals = 3): string =>
  value === null ? '-' : String(Number(value.toFixed(decimals)));

/** A value among others of a column: the same decimals, so that they compare at a glance. */
export const aligned = (value: number | null): string => value?.toFixed(3) ?? '-';

/** A share in percent, rounded down: only the whole is 100 %. The small addend makes up for bounds, which are rounded in the ninth digit. */
export const wholePercent = (share: number): string => `${Math.floor(share * 100 + 1e-4)} %`;

/** An amount of GiB: `1.5 GiB`. */
export const gibText = (gib: number, decimals = 1): string => `${figure(gib, decimals)} GiB`;

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Bytes as a person reads them: `512 B`, `1.4 KiB`, `20 GiB`. */
export function byteText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}
