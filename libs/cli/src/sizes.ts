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
