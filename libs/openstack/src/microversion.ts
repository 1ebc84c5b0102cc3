import { MicroversionUnsupported } from './errors.ts';

/** The range that a service offers: `min` and `max`, e.g. `2.1` and `2.96`. */
export interface VersionRange {
  readonly min: string;
  readonly max: string;
}

/** The range that a call can use: the lowest version with the features it needs, the highest whose answer it understands. */
export interface VersionNeed {
  readonly lowest: string;
  readonly highest: string;
}

/** Negative when `a` is older than `b`, 0 when equal. `2.9` is older than `2.10`. */
export function compareVersions(a: string, b: string): number {
  const [majorA, minorA] = split(a);
  const [majorB, minorB] = split(b);
  return majorA - majorB || minorA - minorB;
}

function split(version: string): [number, number] {
  const match = /^(\d+)\.(\d+)$/.exec(version);
  return match === null ? [0, 0] : [Number(match[1]), Number(match[2])];
}

/** The microversion to send: the highest that both sides know. @throws MicroversionUnsupported when there is none. */
export function negotiate(service: string, call: string, offered: VersionRange, need: VersionNeed): string {
  const version = compareVersions(offered.max, need.highest) < 0 ? offered.max : need.highest;
  if (compareVersions(version, need.lowest) < 0 || compareVersions(offered.min, version) > 0) {
    throw new MicroversionUnsupported(
      service,
      call,
      `${need.lowest} to ${need.highest}`,
      `${offered.min} to ${offered.max}`,
    );
  }
  return version;
}

/** Whether `version` has a feature that came with `since`. */
export function atLeastMicroversion(version: string, since: string): boolean {
  return compareVersions(version, since) >= 0;
}
