/** Numbers, sizes and lists as people read them. Pure. */

export const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

/** `a`, `a and b`, `a, b and c`. */
export const listed = (names) =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

/** Memory as people say it: "512 MiB", "4.0 GiB", "32 GiB". */
export const memoryText = (mib) =>
  mib < 1024 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(mib < 10_240 ? 1 : 0)} GiB`;

/** A value of a host or a VM: the share of what a host has. */
export const shareText = (value, digits = 0) =>
  value === null || value === undefined ? 'unknown' : `${(100 * value).toFixed(digits)} %`;

/**
 * Decimals of values beside a band: one where a value outside of it would be written as its edge is.
 *
 * @param sides of the values: `warm` above the band, `cold` below it
 */
export function digitsBeside(band, values, sides) {
  const edges = band === null ? {} : { warm: shareText(band.high), cold: shareText(Math.max(0, band.low)) };
  return values.some((value, i) => edges[sides[i]] === shareText(value)) ? 1 : 0;
}

/** A value that changes: `43 → 27 %`; alone where the change is not seen. */
export function sharesText(before, after, digits = 0) {
  const [from, to] = [before, after].map((value) => (100 * value).toFixed(digits));
  return from === to ? `${to} %` : `${from} → ${to} %`;
}

/** A multiple of a threshold beside a line: where it counts moves under way as done, it says so. */
export const lineText = (policy, ratio, promised) => `${policy} ${ratio.toFixed(2)}×${promised ? ', moves done' : ''}`;

/** The edges of a band: `21 to 41 %`. */
export const edgesOf = ({ low, high }, digits = 0) =>
  `${(100 * Math.max(0, low)).toFixed(digits)} to ${shareText(high, digits)}`;

/** The moves of a plan that did not complete: `, 1 failed, 2 skipped`. */
export const othersText = ({ failed, skipped }) =>
  `${failed > 0 ? `, ${failed} failed` : ''}${skipped > 0 ? `, ${skipped} skipped` : ''}`;

/** Explains the values of hosts: the resource that they are shares of. */
export const measureText = ({ policy, allocation }) =>
  allocation == null
    ? `${policy}: the share of the host that is in use, as the metrics of the policy say.`
    : allocation === 'instances'
      ? `${policy}: the number of VMs, as a share of the host with the most.`
      : `${policy}: the share of the host's ${allocation} that is allocated in Placement.`;

/** Names of hosts as a picture has room for them: without the domain that all of them share. */
export function withoutDomain(names) {
  const domainOf = (name) => (name.includes('.') ? name.slice(name.indexOf('.')) : '');
  const domain = domainOf(names[0] ?? '');
  return domain !== '' && names.every((name) => domainOf(name) === domain)
    ? (name) => (name?.endsWith(domain) ? name.slice(0, -domain.length) : name)
    : (name) => name;
}

/** The name, cut in its middle to fit the width. @param width in pixels */
export const shortened = (name, width) => {
  const most = Math.max(5, Math.floor(width / 7));
  if (name.length <= most) return name;
  // Hosts differ at their ends.
  const end = Math.ceil(most / 2);
  return `${name.slice(0, most - end - 1)}…${name.slice(-end)}`;
};
