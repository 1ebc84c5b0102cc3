/** The content of the picture of an aggregate's hosts: per host its value, its VMs with their sizes, and ghosts of VMs that would come. Pure. */
import { flows, flowText, named } from './pairs.js';
import { countedValues, counts, valuesAfter } from './ratio.js';
import { bandOf, sideOf } from './skyline.js';
import { digitsBeside, withoutDomain } from './words.js';

/** Steps of a plan by VM. */
const byVm = (steps) => new Map(steps.map((step) => [step.serverId, step]));

/** Per host its VMs, those of the plan where they are or would be. */
function residents({ hosts, vms }, policy, steps, withPlan) {
  const moving = byVm(steps);
  const index = new Map(hosts.map((host, i) => [host.name, i]));
  const of = hosts.map(() => []);
  vms.ids.forEach((id, i) => {
    const step = moving.get(id);
    const at = withPlan && step !== undefined ? (index.get(step.to) ?? vms.hosts[i]) : vms.hosts[i];
    of[at]?.push({ id, name: vms.names[i], weight: vms.weights[policy]?.[i] ?? 0, step });
  });
  return of;
}

/** Blocks of a host from its foot: each VM's share of the measured value. */
function stacked(own, value) {
  const sum = own.reduce((total, { weight }) => total + weight, 0);
  let offset = 0;
  return own
    .toSorted((a, b) => b.weight - a.weight || (a.id < b.id ? -1 : 1))
    .map((vm) => {
      const size = sum > 0 ? ((value ?? 0) * vm.weight) / sum : 0;
      const block = { ...vm, offset, size };
      offset += size;
      return block;
    });
}

/** Blocks of the VMs that move alone, at the top of their host, where the picture has too many VMs for all of them. */
function movers({ hosts }, values, { steps, withPlan, share }) {
  const of = new Map(hosts.map(({ name }, i) => [name, { blocks: [], top: values[i] ?? 0 }]));
  for (const step of steps) {
    const on = of.get(withPlan ? step.to : step.from);
    if (on === undefined) continue;
    const size = share(step, withPlan ? 'destination' : 'source');
    on.top = Math.max(0, on.top - size);
    on.blocks.push({ id: step.serverId, name: step.serverName, step, size, offset: on.top });
  }
  return hosts.map(({ name }) => of.get(name).blocks);
}

/** How many VMs each host has, with the plan or without it. */
function vmsOf(hosts, steps, withPlan) {
  const numbers = new Map(hosts.map(({ name, vms }) => [name, vms]));
  for (const { from, to } of withPlan ? steps : []) {
    numbers.set(from, (numbers.get(from) ?? 0) - 1);
    numbers.set(to, (numbers.get(to) ?? 0) + 1);
  }
  return numbers;
}

/** The content of the picture: per host its value, its VMs with their sizes, and ghosts of VMs that would come. */
export function layout(picture, policy, steps, withPlan) {
  const { hosts, vms, policies } = picture;
  const { policy: name, threshold } = policies[policy];
  const share = (step, side) => step.weights[name]?.[side] ?? 0;
  const after = valuesAfter({ hosts, policies }, withPlan ? steps : [], policy);
  const values = hosts.map(({ name: host }) => after.get(host));
  const blocks =
    vms === null
      ? movers(picture, values, { steps, withPlan, share })
      : residents(picture, policy, steps, withPlan).map((own, i) => stacked(own, values[i]));
  const numbers = vmsOf(hosts, steps, withPlan);
  const before = hosts.map(({ values: own }) => own[policy]);
  const planned = valuesAfter({ hosts, policies }, steps, policy);
  // The order is that of now in both pictures: only blocks move.
  const order = hosts
    .map((_, i) => i)
    .sort((a, b) => (before[b] ?? -1) - (before[a] ?? -1) || (hosts[a].name < hosts[b].name ? -1 : 1));
  // A host that is closed is in no imbalance.
  const band = bandOf(
    values.filter((_, i) => counts(hosts[i])),
    threshold,
  );
  const sides = hosts.map((host, i) => (counts(host) ? sideOf(values[i], band) : 'closed-host'));
  const drawn = order.map((i) => ({
    ...hosts[i],
    value: values[i],
    planned: withPlan || planned.get(hosts[i].name) === values[i] ? null : planned.get(hosts[i].name),
    vms: numbers.get(hosts[i].name),
    side: sides[i],
    blocks: blocks[i],
  }));
  if (!withPlan) addGhosts(drawn, steps, share);
  // The values after a plan that is not drawn as done are beside this band, and belong to the one after it.
  const bandAfter = withPlan || steps.length === 0 ? null : bandOf(countedValues(picture, planned), threshold);
  const top = Math.max(
    1e-6,
    band?.high ?? 0,
    ...drawn.map(({ value, ghosts = [] }) => (value ?? 0) + ghosts.reduce((sum, { size }) => sum + size, 0)),
  );
  const all = flows(steps);
  const names = hosts.map(({ name: host }) => host);
  const short = withoutDomain(names);
  const how = { byName: named(steps), short, prefix: prefixOf(names.map(short)) };
  const changes = new Map(hosts.map(({ name: host }) => [host, changesOf(all, host, how)]));
  return {
    hosts: drawn,
    band,
    bandAfter,
    threshold,
    policy: name,
    top: top * 1.02,
    digits: digitsBeside(band, values, sides),
    crowded: vms === null,
    changes,
    short,
  };
}

/** The VMs that leave a host or come, in three lengths: with the other host's name, with it but without the prefix of all names, and without it. */
const changesOf = (all, host, { byName, short, prefix }) =>
  all.flatMap((flow) => {
    const what = flowText(flow, byName);
    const by = flow.steps.length;
    const line = (sign, word, other) =>
      [` ${word} ${short(other)}`, ` ${word} ${short(other).slice(prefix)}`, ''].map((end) => `${sign} ${what}${end}`);
    if (flow.from === host) return [{ texts: line('−', '→', flow.to), by: -by }];
    return flow.to === host ? [{ texts: line('+', 'from', flow.from), by }] : [];
  });

/** The length of what all names begin with, up to the last sign between words. */
function prefixOf(names) {
  const [first = '', ...others] = names;
  let same = first.length;
  for (const name of others) while (!name.startsWith(first.slice(0, same))) same--;
  return others.length === 0 ? 0 : first.slice(0, same).search(/[^-_.]*$/);
}

function addGhosts(hosts, steps, share) {
  for (const host of hosts) {
    let offset = host.value ?? 0;
    host.ghosts = steps
      .filter(({ to }) => to === host.name)
      .map((step) => {
        const ghost = { id: step.serverId, name: step.serverName, offset, size: share(step, 'destination') };
        offset += ghost.size;
        return ghost;
      });
  }
}
