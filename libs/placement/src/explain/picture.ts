/** A snapshot as people see it: hosts with their VMs, values in six significant digits, in the order of the policies. Pure. */
import { byText, type Snapshot, type Step, vmQueryOf, vmReadingOf } from '@kronos/contracts';

/** In six significant digits. */
export const rounded = (value: number | null | undefined): number | null =>
  value === null || value === undefined ? null : Number(value.toPrecision(6));

/** The identity of a snapshot. */
export const observed = ({ id, time, cycle, purpose }: Snapshot) => ({ id, time, cycle, purpose });

/** The raw values of a host, by policy. */
export const valuesOfHost = ({ scores }: Snapshot, host: string): (number | null)[] =>
  scores.policies.map(({ hosts }) => hosts[host]?.raw ?? null);

/** A host's value of a policy once these steps are done. */
export const valueAfter = (
  before: number,
  { host, policy }: { readonly host: string; readonly policy: string },
  steps: readonly Pick<Step, 'from' | 'to' | 'weights'>[],
): number =>
  steps.reduce((value, { from, to, weights }) => {
    const gone = from === host ? (weights[policy]?.source ?? 0) : 0;
    return value - gone + (to === host ? (weights[policy]?.destination ?? 0) : 0);
  }, before);

/** The policies with the lowest and the highest value of a host. */
export const policyRanges = ({ scores }: Snapshot) =>
  scores.policies.map(({ hosts, ...policy }) => {
    const values = Object.values(hosts).map(({ raw }) => raw);
    const least = values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
    const most = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    return {
      ...policy,
      lowest: values.length === 0 ? null : rounded(least),
      highest: values.length === 0 ? null : rounded(most),
    };
  });

/** The readings of the VMs, in the order of the policies that are scored. */
const readingsOfVms = ({ policies, vmReadings, scores }: Snapshot) =>
  scores.policies.map(({ policy }) => {
    const own = policies.find(({ name }) => name === policy);
    return own === undefined ? undefined : vmReadingOf(vmReadings, vmQueryOf(own, 'vm_profile'));
  });

/** More VMs are neither told apart nor drawn ten times a second: then a picture has their numbers alone. */
const MOST_VMS = 1500;

/** Hosts and VMs to be drawn: columns in place of objects, as there may be thousands of VMs. */
export function pictureOf(snapshot: Snapshot) {
  const hosts = snapshot.hosts.toSorted((a, b) => byText(a.name, b.name));
  const index = new Map(hosts.map(({ name }, i) => [name, i]));
  const servers = snapshot.servers.filter(({ host }) => index.has(host));
  const residents = new Map<string, number>();
  for (const { host } of servers) residents.set(host, (residents.get(host) ?? 0) + 1);
  return {
    aggregate: snapshot.aggregate,
    snapshot: observed(snapshot),
    combined: snapshot.scores.combined,
    policies: policyRanges(snapshot),
    hosts: hosts.map(({ name, service }) => ({
      name,
      service,
      vms: residents.get(name) ?? 0,
      values: valuesOfHost(snapshot, name).map(rounded),
    })),
    vms:
      servers.length > MOST_VMS
        ? null
        : {
            ids: servers.map(({ id }) => id),
            names: servers.map(({ name }) => name),
            hosts: servers.map(({ host }) => index.get(host) ?? 0),
            weights: readingsOfVms(snapshot).map((reading) => servers.map(({ id }) => rounded(reading?.values[id]))),
          },
  };
}
