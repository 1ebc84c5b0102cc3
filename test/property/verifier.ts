import type {
  CompleteEngineOptions,
  Decision,
  HostObservation,
  Policy,
  ServerObservation,
  Snapshot,
  Step,
} from '@kronos/contracts';
import type { Memory } from '@kronos/placement';

/** The windows that drawn VMs have; every drawn snapshot is of a Thursday. */
export const OPEN_WINDOW = '00:00-24:00';
export const CLOSED_WINDOW = 'Mon 00:00-01:00';

/**
 * A second opinion on plans, written from the specification and sharing no code with the planner: it knows only the
 * snapshot, the memory, the options and the decision. Every function returns what is wrong, in words; nothing is wrong when
 * the list is empty.
 */
export type Case = {
  readonly snapshot: Snapshot;
  readonly memory: Memory;
  readonly options: CompleteEngineOptions;
  /** The state of a server's own windows at a time. Default: {@link drawnWindow}. */
  readonly ownWindow?: (windows: readonly string[], zone: string, atMs: number) => OwnWindow;
};

type OwnWindow = 'open' | 'closed' | 'unreadable';

const drawnWindow = ([text]: readonly string[]): OwnWindow =>
  text === OPEN_WINDOW ? 'open' : text === CLOSED_WINDOW ? 'closed' : 'unreadable';

const SMALL = 1e-7;

/** The rules for every decision. */
export function verify(input: Case, decision: Decision): string[] {
  return [
    ...verifyShape(input, decision),
    ...verifyServers(input, decision),
    ...verifyDestinations(input, decision),
    ...verifyTransit(input, decision),
    ...verifyScores(input, decision),
    ...verifyPack(input, decision),
  ];
}

const stepsOf = (decision: Decision): readonly Step[] => decision.plan?.steps ?? [];

/** Budget, numbers and dependencies of steps. No VM moves twice except when parked, and each step starts at the VM's host. */
export function verifyShape({ snapshot, memory }: Case, decision: Decision): string[] {
  const wrong: string[] = [];
  const steps = stepsOf(decision);
  const enabled = snapshot.policies.filter((policy) => policy.enabled);
  let budget = enabled.length === 0 ? 10 : 0;
  for (const policy of enabled) budget = Math.max(budget, policy.maxMigrationsPerCycle);
  budget = Math.max(0, budget - memory.inFlight.filter(({ aggregate }) => aggregate === undefined).length);
  if (steps.length > budget) wrong.push(`${steps.length} steps with a budget of ${budget}`);
  if (decision.plan !== null && decision.plan.budget !== budget)
    wrong.push(`the plan names a budget of ${decision.plan.budget}, not ${budget}`);
  if ((decision.outcome === 'planned') !== (decision.plan !== null)) wrong.push('outcome and plan disagree');
  return [...wrong, ...verifyOrder(snapshot, steps)];
}

/** Steps are numbered, wait for earlier ones, and take each VM on from where it is. */
function verifyOrder(snapshot: Snapshot, steps: readonly Step[]): string[] {
  const wrong: string[] = [];
  const at = new Map(snapshot.servers.map((server) => [server.id, server.host]));
  const movedBy = new Map<string, Step>();
  const tasks = new Set<string>();
  steps.forEach((step, i) => {
    if (step.step !== i + 1) wrong.push(`step ${i + 1} is called ${step.step}`);
    if (step.taskId !== `${snapshot.id}-s${step.step}`) wrong.push(`${step.taskId} is no task of the snapshot`);
    for (const task of step.dependsOn)
      if (!tasks.has(task)) wrong.push(`step ${step.step} waits for ${task}, which does not come before it`);
    tasks.add(step.taskId);
    const before = movedBy.get(step.serverId);
    if (before !== undefined) {
      if (!before.parking || step.parking) wrong.push(`${step.serverId} moves twice`);
      else if (!step.dependsOn.includes(before.taskId))
        wrong.push(`${step.serverId} does not wait for its own parking`);
    }
    movedBy.set(step.serverId, step);
    if (at.get(step.serverId) !== step.from)
      wrong.push(`step ${step.step} is from ${step.from}, but ${step.serverId} is on ${at.get(step.serverId)}`);
    if (step.to === step.from) wrong.push(`step ${step.step} goes nowhere`);
    at.set(step.serverId, step.to);
    const places = [step.to, step.from, ...step.alternates];
    if (new Set(places).size !== places.length) wrong.push(`step ${step.step} names a host twice`);
  });
  for (const [id, step] of movedBy) if (step.parking) wrong.push(`${id} stays parked`);
  return wrong;
}

/** The time of a decision, ms since the epoch: never before the last one. */
const nowOf = ({ snapshot, memory }: Case): number => Math.max(Date.parse(snapshot.time), memory.lastDecidedMs ?? 0);

type Objection = (why: string) => void;

/** The VM itself may be moved: by Nova, by its owner, by what is remembered of it, and by its profile. */
export function verifyServers(input: Case, decision: Decision): string[] {
  const wrong: string[] = [];
  const { snapshot, options } = input;
  const now = nowOf(input);
  for (const step of stepsOf(decision)) {
    const no = (why: string): void => {
      wrong.push(`${step.serverId} moves although ${why}`);
    };
    const rows = snapshot.servers.filter((server) => server.id === step.serverId);
    const server = rows[0];
    const born = server?.createdAt ?? null;
    const age = born === null ? 0 : (now - Date.parse(born)) / 1000;
    if (step.phase !== 'evacuate' && age < options.minInstanceAgeSeconds) no(`it is ${age} s old`);
    if (server === undefined) {
      no('it is not in the snapshot');
      continue;
    }
    if (rows.length > 1 || server.alsoOn.length > 0) no('it was seen on two hosts');
    byItself(server, no);
    byItsWindow(input, step, server, no);
    byThePast(input, server, no);
    byItsHost(snapshot, server, no);
    if (options.balance) byItsProfile(snapshot, server, no);
  }
  return wrong;
}

/** Objections by the state of the VM in Nova and by its owner's metadata. */
function byItself(server: ServerObservation, no: Objection): void {
  if (!['ACTIVE', 'PAUSED'].includes(server.status)) no(`it is ${server.status}`);
  if (server.taskState !== null) no(`its task state is ${server.taskState}`);
  if (server.locked) no('it is locked');
  if (server.optedOutBy !== null) no('it is opted out');
  const bad = Object.entries(server.extraSpecs).find(
    ([key]) =>
      key.startsWith('hw:tpm_model') ||
      key === 'hw:mem_encryption' ||
      key === 'accel:device_profile' ||
      key === 'pci_passthrough:alias',
  );
  if (bad !== undefined) no(`its flavor has ${bad[0]}`);
}

function byItsWindow(input: Case, step: Step, server: ServerObservation, no: Objection): void {
  const { options, ownWindow = drawnWindow } = input;
  const window = server.windows === undefined ? 'open' : ownWindow(server.windows, options.timezone.name, nowOf(input));
  const exempt = step.phase === 'evacuate' && options.evacuationIgnoresWindows && window === 'closed';
  if (window !== 'open' && !exempt) no('its own window is closed');
}

/** Moves under way, quarantines and cooldowns. */
function byThePast(input: Case, server: ServerObservation, no: Objection): void {
  const { snapshot, memory, options } = input;
  const now = nowOf(input);
  if (snapshot.migrations.some((migration) => migration.serverId === server.id)) no('it is migrating');
  if (memory.inFlight.some((task) => task.serverId === server.id)) no('it is in flight');
  for (const fact of ownOf(memory.quarantines, server.id)) {
    const seconds = fact.seconds ?? options.instanceQuarantineSeconds;
    if (seconds < 0 || now < fact.atMs + 1000 * seconds) no('it is quarantined');
  }
  for (const at of ownOf(memory.releases, server.id))
    if (now < at + 1000 * options.instanceCooldownSeconds) no('it is cooling down');
}

/** The facts under a name, which may be one that every object has. */
const ownOf = <T>(of: Readonly<Record<string, readonly T[]>>, name: string): readonly T[] =>
  Object.hasOwn(of, name) ? (of[name] ?? []) : [];

function byItsHost({ hosts }: Snapshot, server: ServerObservation, no: Objection): void {
  const service = hosts.find((h) => h.name === server.host)?.service;
  if (service === undefined || service.state !== 'up' || service.forcedDown || service.status === 'unknown')
    no('its host is not up');
}

function byItsProfile(snapshot: Snapshot, server: ServerObservation, no: Objection): void {
  for (const policy of snapshot.policies) {
    if (!policy.enabled || !takesPart(snapshot, policy.name) || policy.vmProfileFallback !== 'skip') continue;
    if (sampleOf(snapshot, policy.name, server.id) === null) no(`${policy.name} has no sample of it`);
  }
}

/** Whether the destination and the alternates may take the VM, apart from rules that depend on other moves. */
export function verifyDestinations(input: Case, decision: Decision): string[] {
  const wrong: string[] = [];
  const { snapshot, memory, options } = input;
  const hosts = new Map(snapshot.hosts.map((host) => [host.name, host]));
  for (const step of stepsOf(decision)) {
    const server = snapshot.servers.find((s) => s.id === step.serverId);
    const source = hosts.get(step.from);
    if (server === undefined || source === undefined) continue;
    for (const name of [step.to, ...step.alternates]) {
      const no = (why: string): void => {
        wrong.push(`${step.serverId} to ${name} although ${why}`);
      };
      const host = hosts.get(name);
      if (host === undefined) {
        no('it is no host of the aggregate');
        continue;
      }
      const { state, status, forcedDown } = host.service;
      if (state !== 'up' || status !== 'enabled' || forcedDown) no('its service is not up and enabled');
      byZones(server, { host, source }, options, no);
      byHypervisors(host, source, no);
      if (isBroken(memory, options, name, nowOf(input))) no('its breaker is open');
      byAmounts(server, host, no);
    }
  }
  return wrong;
}

function byZones(
  { pinnedAvailabilityZone: pin }: ServerObservation,
  { host, source }: { readonly host: HostObservation; readonly source: HostObservation },
  options: CompleteEngineOptions,
  no: Objection,
): void {
  const other = host.availabilityZone !== source.availabilityZone;
  if (options.restrictToAz && other) no('it is in another zone');
  if (typeof pin === 'string' && pin !== host.availabilityZone) no(`the VM is pinned to ${pin}`);
  if (pin === undefined && other) no('the pin is unknown');
}

function byHypervisors(host: HostObservation, source: HostObservation, no: Objection): void {
  if (host.cell !== source.cell) no('it is in another cell');
  if (host.hypervisorType !== source.hypervisorType) no('its hypervisor is of another type');
  if (host.hypervisorVersion < source.hypervisorVersion) no('its hypervisor is older');
}

function byAmounts({ resources }: ServerObservation, { inventory }: HostObservation, no: Objection): void {
  if (inventory === null) no('its capacity is unknown');
  for (const [resource, amount] of Object.entries(resources)) {
    const item = inventory?.[resource];
    if (amount === 0) continue;
    if (item === undefined) no(`it has no ${resource}`);
    else if (
      amount > (item.maxUnit ?? amount) ||
      amount < (item.minUnit ?? amount) ||
      amount % (item.stepSize ?? 1) !== 0
    )
      no(`${amount} ${resource} is no amount it takes`);
  }
}

function isBroken(memory: Memory, options: CompleteEngineOptions, host: string, now: number): boolean {
  const times = ownOf(memory.hostFailures, host);
  return times.some((last) => {
    const within = times.filter((at) => at <= last && at >= last - 1000 * options.breakerWindowSeconds).length;
    return within >= options.breakerFailures && now < last + 1000 * options.breakerDurationSeconds;
  });
}

/** A state of a running plan: its completed and its running steps. */
type Moment = { readonly done: ReadonlySet<Step>; readonly running: ReadonlySet<Step> };

/** Every state in between is legal: for few steps all of them are looked at, for many the worst case of each host. */
export function verifyTransit(input: Case, decision: Decision): string[] {
  const steps = stepsOf(decision);
  const wrong = new Set<string>();
  if (steps.length <= 9) for (const moment of allMoments(steps)) for (const w of illegal(input, moment)) wrong.add(w);
  else {
    for (const moment of worstMoments(steps)) for (const w of illegal(input, moment)) wrong.add(w);
    for (const moment of sampledMoments(steps, 200, 1)) for (const w of illegal(input, moment)) wrong.add(w);
  }
  for (const w of verifyAffinity(input, decision)) wrong.add(w);
  return [...wrong];
}

/** All sets of completed steps that respect the dependencies, with all other possible steps running. */
function* allMoments(steps: readonly Step[]): Generator<Moment> {
  for (let bits = 0; bits < 2 ** steps.length; bits++) {
    const done = new Set(steps.filter((_, i) => (bits >> i) & 1));
    if (isClosed(steps, done)) yield { done, running: startable(steps, done) };
  }
}

/** For each host: all arrivals running or done, and only those steps done that they depend on. */
function* worstMoments(steps: readonly Step[]): Generator<Moment> {
  for (const host of new Set(steps.map((step) => step.to))) {
    const done = new Set<Step>();
    const add = (task: string): void => {
      const step = steps.find((s) => s.taskId === task);
      if (step === undefined || done.has(step)) return;
      done.add(step);
      step.dependsOn.forEach(add);
    };
    for (const step of steps) if (step.to === host) step.dependsOn.forEach(add);
    yield { done, running: startable(steps, done) };
  }
}

/** States of random executions: steps complete in random order, some never. */
export function* sampledMoments(steps: readonly Step[], count: number, seed: number): Generator<Moment> {
  let state = seed;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  for (let run = 0; run < count; run++) {
    const done = new Set<Step>();
    const end = Math.floor(random() * (steps.length + 1));
    while (done.size < end) {
      const open = [...startable(steps, done)];
      const next = open[Math.floor(random() * open.length)];
      if (next === undefined) break;
      done.add(next);
      yield { done: new Set(done), running: new Set([...startable(steps, done)].filter(() => random() < 0.7)) };
    }
  }
}

const isClosed = (steps: readonly Step[], done: ReadonlySet<Step>): boolean => {
  const tasks = new Set([...done].map((step) => step.taskId));
  return steps.every((step) => !done.has(step) || step.dependsOn.every((task) => tasks.has(task)));
};

const startable = (steps: readonly Step[], done: ReadonlySet<Step>): Set<Step> => {
  const tasks = new Set([...done].map((step) => step.taskId));
  return new Set(steps.filter((step) => !done.has(step) && step.dependsOn.every((task) => tasks.has(task))));
};

/** Soft groups may be broken where that is only a penalty. */
const mayBreak = (options: CompleteEngineOptions, policy: string): boolean =>
  options.softRules === 'penalty' && policy.startsWith('soft-');

/** Violations in a state: an arrival of the plan that exceeds a capacity or breaks an anti-affinity group. */
export function illegal(input: Case, moment: Moment): string[] {
  return [...overfull(input, moment), ...crowded(input, moment)];
}

function overfull({ snapshot, memory }: Case, { done, running }: Moment): string[] {
  const wrong: string[] = [];
  const arrivals = [...done, ...running];
  const hosts = new Map(snapshot.hosts.map((host) => [host.name, host]));
  const servers = new Map(snapshot.servers.map((server) => [server.id, server]));
  for (const name of new Set(arrivals.map((step) => step.to))) {
    const arrived = arrivals.filter((step) => step.to === name);
    for (const [resource, item] of Object.entries(hosts.get(name)?.inventory ?? {})) {
      const claim = (step: Step): number => servers.get(step.serverId)?.resources[resource] ?? 0;
      if (!arrived.some((step) => claim(step) > 0)) continue;
      let used = item.used + unclaimed(snapshot, memory, name, resource);
      for (const step of arrived) used += claim(step);
      for (const step of done) if (step.from === name) used -= claim(step);
      if (used > item.capacity + SMALL) wrong.push(`${name} holds ${used} ${resource} of ${item.capacity}`);
    }
  }
  return wrong;
}

/** Every host on which a server counts. */
function presence({ snapshot, memory }: Case, { done, running }: Moment, id: string): Set<string> {
  const server = snapshot.servers.findLast((one) => one.id === id);
  if (server === undefined) return new Set();
  const mine = (step: { readonly serverId: string }): boolean => step.serverId === id;
  const places = new Set([server.host, ...server.alsoOn]);
  for (const { sourceHost, destHost } of snapshot.migrations.filter(mine))
    for (const end of [sourceHost, destHost]) if (end !== null) places.add(end);
  for (const { from, destination } of memory.inFlight.filter(mine)) places.add(from).add(destination);
  const left = [...done].filter(mine);
  for (const step of left) places.delete(step.from);
  for (const step of [...left, ...[...running].filter(mine)]) places.add(step.to);
  // The second move of a parked VM leaves the third host.
  for (const step of left) if (!step.parking) places.delete(step.from);
  return places;
}

function crowded(input: Case, moment: Moment): string[] {
  const wrong: string[] = [];
  for (const group of input.snapshot.serverGroups) {
    if (!group.policy.endsWith('anti-affinity') || mayBreak(input.options, group.policy)) continue;
    for (const step of [...moment.done, ...moment.running]) {
      if (!group.members.includes(step.serverId)) continue;
      let count = 0;
      for (const id of new Set(group.members)) if (presence(input, moment, id).has(step.to)) count++;
      // A parked VM has left the host.
      if (moment.done.has(step) && !presence(input, moment, step.serverId).has(step.to)) continue;
      if (count > group.maxServerPerHost)
        wrong.push(`${step.to} holds ${count} members of ${group.id}, which allows ${group.maxServerPerHost}`);
    }
  }
  return wrong;
}

/** Released moves that will still take a server on from where it is seen: a parked one has two of them. */
function flying(snapshot: Snapshot, memory: Memory): Memory['inFlight'] {
  const of = (task: Memory['inFlight'][number], from: string): boolean =>
    task.from === from ||
    memory.inFlight.some(
      (other) => other.serverId === task.serverId && other.destination === task.from && of(other, from),
    );
  return memory.inFlight.filter((task) => {
    const server = snapshot.servers.find((s) => s.id === task.serverId);
    return server !== undefined && of(task, server.host);
  });
}

/** The resources that released moves to the host will claim and that Nova had not claimed yet in the snapshot. */
function unclaimed(snapshot: Snapshot, memory: Memory, host: string, resource: string): number {
  let sum = 0;
  for (const task of memory.inFlight) {
    const comes = task.aggregate !== undefined && snapshot.servers.every(({ id }) => id !== task.serverId);
    if (task.destination !== host || !(comes || flying(snapshot, memory).includes(task))) continue;
    const seen =
      task.startedAtMs !== null &&
      task.startedAtMs <= Date.parse(snapshot.observedFrom) &&
      snapshot.migrations.some((m) => m.serverId === task.serverId && m.destHost === host);
    if (!seen) sum += task.resources[resource] ?? 0;
  }
  return sum;
}

type Group = Snapshot['serverGroups'][number];

/** Members of affinity groups move only to where all the others are, or to gather. */
function verifyAffinity({ snapshot, memory, options }: Case, decision: Decision): string[] {
  const wrong: string[] = [];
  const steps = stepsOf(decision);
  const servers = new Map(snapshot.servers.map((server) => [server.id, server]));
  const inFlight = new Map(memory.inFlight.map((task) => [task.serverId, task]));
  const at = (id: string): string => {
    const task = inFlight.get(id);
    const host = servers.get(id)?.host ?? '';
    return task !== undefined && task.from === host ? task.destination : host;
  };
  for (const group of snapshot.serverGroups) {
    if (group.policy !== 'affinity' && group.policy !== 'soft-affinity') continue;
    if (mayBreak(options, group.policy)) continue;
    const members = [...new Set(group.members)].filter((id) => servers.has(id));
    for (const step of steps) {
      if (!members.includes(step.serverId)) continue;
      if (step.phase !== 'affinity') {
        wrong.push(...strays(group, step, members, { steps, at }));
        continue;
      }
      const allowed = group.policy === 'affinity' ? options.enforceHardAffinity : options.enforceSoftAffinity;
      if (!allowed) wrong.push(`${group.id} is repaired although nobody asked`);
      wrong.push(...gathers(group, step, members, { steps, at }));
    }
  }
  return wrong;
}

/** The steps of a plan, and the host on which a VM is or will be without them. */
interface Places {
  readonly steps: readonly Step[];
  readonly at: (id: string) => string;
}

/** The errors of a step that gathers a group: it must go to the host with most members, and all steps to one host. */
function gathers(group: Group, step: Step, members: readonly string[], { steps, at }: Places): string[] {
  const wrong: string[] = [];
  const here = members.filter((id) => at(id) === step.to).length;
  const counts = members.map((id) => members.filter((other) => at(other) === at(id)).length);
  if (here === 0) wrong.push(`${group.id} gathers on ${step.to}, where no member is`);
  if (here < 1 || here > Math.max(...counts)) wrong.push(`${group.id} gathers on an odd host`);
  for (const other of steps)
    if (members.includes(other.serverId) && other.to !== step.to) wrong.push(`${group.id} is parted by the plan`);
  return wrong;
}

/** The errors of another step of a member: the other members must be on its destination and stay there. */
function strays(group: Group, step: Step, members: readonly string[], { steps, at }: Places): string[] {
  const wrong: string[] = [];
  const others = members.filter((id) => id !== step.serverId);
  if (group.policy === 'affinity' && !others.some((id) => at(id) === step.to))
    wrong.push(`Nova would refuse ${step.serverId}: no other member of ${group.id} is on ${step.to}`);
  for (const id of others) {
    if (at(id) !== step.to) wrong.push(`${id} of ${group.id} is not on ${step.to}`);
    if (steps.some((other) => other.serverId === id)) wrong.push(`${id} of ${group.id} moves too`);
  }
  return wrong;
}

type Scores = ReturnType<typeof scores>;

/** The scores that the decision states are those of its start and of its end, and no policy gets worse past its threshold. */
export function verifyScores(input: Case, decision: Decision): string[] {
  const wrong: string[] = [];
  const steps = stepsOf(decision);
  const start = scores(input, []);
  const end = scores(input, steps);
  wrong.push(...misstated('before', decision.before, start), ...misstated('after', decision.plan?.after ?? null, end));
  if (!steps.some((step) => step.phase === 'pack')) wrong.push(...worse(input, decision, start, end));
  if (start.combined === null && steps.some((step) => step.phase === 'spread' || step.phase === 'pack'))
    wrong.push('balanced without any score');
  const plan = decision.plan;
  if (plan !== null && plan.lowerBound !== null && plan.after.combined !== null)
    if (plan.lowerBound > plan.after.combined + SMALL) wrong.push('the plan is better than its lower bound');
  return wrong;
}

/** Scores that a decision states and that are others. @param stated null: it states none */
function misstated(when: string, stated: Decision['before'] | null, found: Scores): string[] {
  if (stated === null) return [];
  const wrong: string[] = [];
  const close = (a: number | null, b: number | null): boolean =>
    a === null || b === null ? a === b : Math.abs(a - b) <= SMALL;
  if (!close(stated.combined, found.combined))
    wrong.push(`combined ${when}: ${stated.combined}, not ${found.combined}`);
  for (const state of stated.policies) {
    const value = found.policies.get(state.policy) ?? null;
    if (!close(state.imbalance, value)) wrong.push(`${state.policy} ${when}: ${state.imbalance}, not ${value}`);
  }
  return wrong;
}

/** Policies that get worse past their threshold. */
function worse({ snapshot, options }: Case, decision: Decision, start: Scores, end: Scores): string[] {
  const wrong: string[] = [];
  // A mandatory move may exceed a threshold, and says so.
  const owed =
    options.evacuationThresholds === 'prefer' &&
    stepsOf(decision).some(({ phase }) => phase === 'evacuate' || phase === 'repair' || phase === 'affinity');
  for (const policy of snapshot.policies) {
    const before = start.policies.get(policy.name);
    const after = end.policies.get(policy.name);
    if (before === undefined || after === undefined) continue;
    const said = decision.warnings.some(
      ({ code, detail }) => code === 'past-threshold' && detail?.policy === policy.name,
    );
    if (after > policy.threshold + SMALL && after > before + SMALL && !(owed && said))
      wrong.push(`${policy.name} ends at ${after}: worse than ${before} and above ${policy.threshold}`);
  }
  return wrong;
}

/**
 * Pack: no host is filled to a policy's capacity threshold, and none takes VMs that is emptied or was empty; a host that is
 * emptied loses all its VMs, except for one that the cycles to come can finish.
 */
function verifyPack(input: Case, decision: Decision): string[] {
  const steps = stepsOf(decision).filter((step) => step.phase === 'pack');
  return [
    ...filledUp(input, decision, steps),
    ...openedAgain(input, decision, steps),
    ...halfEmptied(input, decision, steps),
  ];
}

/** Says where a server is at the start of a plan: released moves have brought it on. */
function starts({ snapshot, memory }: Case): (server: ServerObservation) => string {
  const inFlight = flying(snapshot, memory);
  return (server) => {
    const own = inFlight.filter((task) => task.serverId === server.id);
    return own.find((task) => own.every((other) => other.from !== task.destination))?.destination ?? server.host;
  };
}

function filledUp(input: Case, decision: Decision, steps: readonly Step[]): string[] {
  const wrong: string[] = [];
  const { snapshot } = input;
  for (const policy of snapshot.policies) {
    if (!policy.enabled || !takesPart(snapshot, policy.name)) continue;
    for (const host of new Set(steps.map((step) => step.to))) {
      const value = fillOf(input, policy, stepsOf(decision), host);
      if (value >= (policy.capacityThreshold ?? 0) + SMALL)
        wrong.push(`${host} is filled to ${value} of ${policy.capacityThreshold} by ${policy.name}`);
    }
  }
  return wrong;
}

/** A host's capacity value after released moves and all steps of a plan. */
function fillOf({ snapshot, memory }: Case, policy: Policy, steps: readonly Step[], host: string): number {
  let value = snapshot.hostReadings.find((r) => r.query === policy.capacityQuery)?.values[host] ?? 0;
  const into = ({ weights }: Pick<Step, 'weights'>): number => weights[policy.name]?.destination ?? 0;
  const outOf = ({ weights }: Pick<Step, 'weights'>): number => weights[policy.name]?.source ?? 0;
  for (const task of flying(snapshot, memory)) {
    if (task.destination === host) value += into(task);
    if (task.from === host) value -= outOf(task);
  }
  // VMs that other passes bring count too. VMs that they take away may not have left yet.
  for (const step of steps) if (step.to === host) value += into(step);
  for (const step of steps) if (step.from === host) value -= outOf(step);
  return value;
}

/** Hosts that take VMs and are emptied, or were empty. */
function openedAgain(input: Case, decision: Decision, steps: readonly Step[]): string[] {
  const wrong: string[] = [];
  const { snapshot, memory } = input;
  const startOf = starts(input);
  const drained = new Set(steps.map((step) => step.from));
  for (const step of steps) {
    if (drained.has(step.to)) wrong.push(`${step.to} takes ${step.serverId} and is emptied`);
    const used = snapshot.servers.some((server) => startOf(server) === step.to || server.alsoOn.includes(step.to));
    const also = memory.inFlight.some((task) => task.from === step.to || task.destination === step.to);
    const before = stepsOf(decision).some((other) => other.to === step.to && other.phase !== 'pack');
    const running = snapshot.migrations.some((m) => m.sourceHost === step.to || m.destHost === step.to);
    if (!used && !also && !before && !running) wrong.push(`${step.to} was empty and takes ${step.serverId}`);
  }
  return wrong;
}

function halfEmptied(input: Case, decision: Decision, steps: readonly Step[]): string[] {
  const wrong: string[] = [];
  const { snapshot, options } = input;
  const startOf = starts(input);
  let unfinished = 0;
  const reach = (options.packReachCycles - 1) * Math.max(...snapshot.policies.map((p) => p.maxMigrationsPerCycle));
  for (const host of new Set(steps.map((step) => step.from))) {
    const gone = new Set(stepsOf(decision).flatMap((step) => (step.from === host ? [step.serverId] : [])));
    const stays = snapshot.servers.filter((server) => startOf(server) === host && !gone.has(server.id));
    const rest = new Set(stays.map(({ id }) => id)).size;
    if (rest > 0) unfinished++;
    if (rest > reach) wrong.push(`${rest} VMs stay on ${host}, and ${reach} moves are in reach`);
  }
  if (unfinished > 1) wrong.push(`${unfinished} hosts are left half emptied`);
  return wrong;
}

/** Imbalance of each policy that takes part, after released moves and the given steps. */
export function scores(
  input: Case,
  steps: readonly Step[],
): { combined: number | null; policies: Map<string, number> } {
  const { snapshot, options } = input;
  const policies = new Map<string, number>();
  let combined: number | null = null;
  for (const policy of snapshot.policies) {
    if (!options.balance || !policy.enabled || !takesPart(snapshot, policy.name)) continue;
    const values = valuesAfter(input, policy, steps);
    const counted = snapshot.hosts.filter(isCounted).map((host) => values.get(host.name) ?? 0);
    const imbalance = Math.max(...counted) - Math.min(...counted);
    policies.set(policy.name, imbalance);
    combined = (combined ?? 0) + policy.weight * imbalance;
  }
  return { combined, policies };
}

/** The value of each host after released moves and the given steps. */
function valuesAfter({ snapshot, memory }: Case, policy: Policy, steps: readonly Step[]): Map<string, number> {
  const values = new Map<string, number>();
  const reading = snapshot.hostReadings.find((r) => r.query === policy.imbalanceQuery && r.label === policy.hostLabel);
  for (const host of snapshot.hosts) values.set(host.name, reading?.values[host.name] ?? 0);
  const add = (host: string, by: number): void => {
    if (values.has(host)) values.set(host, (values.get(host) ?? 0) + by);
  };
  for (const task of flying(snapshot, memory)) {
    if (!values.has(task.destination)) continue;
    add(task.from, -(task.weights[policy.name]?.source ?? 0));
    add(task.destination, task.weights[policy.name]?.destination ?? 0);
  }
  for (const step of steps) {
    const server = snapshot.servers.find((s) => s.id === step.serverId);
    if (server === undefined) continue;
    const share = shareOf(snapshot, policy.name, server) * sizeOf(snapshot, policy.name, server.host);
    add(step.from, -share / sizeOf(snapshot, policy.name, step.from));
    add(step.to, share / sizeOf(snapshot, policy.name, step.to));
  }
  return values;
}

const isCounted = (host: HostObservation): boolean =>
  host.service.state === 'up' && host.service.status === 'enabled' && !host.service.forcedDown;

/** Whether an answer is healthy and complete, with shares within [0,1] or sizes above 0. */
function isFine(
  { hostReadings, hosts }: Snapshot,
  of: { readonly query: string; readonly label: string | null },
  share: boolean,
): boolean {
  const reading = hostReadings.find((r) => r.query === of.query && r.label === of.label);
  if (reading?.health !== 'HEALTHY') return false;
  // Sizes may differ by a factor of 4096.
  const values = hosts.flatMap((host) => reading.values[host.name] ?? []);
  if (!share && Math.max(...values) > 4096 * Math.min(...values)) return false;
  return hosts.every((host) => {
    const value = reading.values[host.name];
    if (value === undefined) return host.service.state === 'down';
    return share ? value >= 0 && value <= 1 : value > 0;
  });
}

/** A policy takes part when its answers are healthy, complete and within [0,1], and at least one host may be a destination. */
function takesPart(snapshot: Snapshot, name: string): boolean {
  const policy = snapshot.policies.find((p) => p.name === name);
  if (policy === undefined || !snapshot.hosts.some(isCounted)) return false;
  const fine = (query: string | null, share: boolean): boolean =>
    query === null || isFine(snapshot, { query, label: policy.hostLabel }, share);
  return (
    fine(policy.imbalanceQuery, true) &&
    fine(policy.hostSizeQuery, false) &&
    (policy.mode === 'spread' || fine(policy.capacityQuery, true))
  );
}

function sizeOf(snapshot: Snapshot, name: string, host: string): number {
  const policy = snapshot.policies.find((p) => p.name === name);
  if (policy?.hostSizeQuery == null) return 1;
  return snapshot.hostReadings.find((r) => r.query === policy.hostSizeQuery)?.values[host] ?? 1;
}

function sampleOf(snapshot: Snapshot, name: string, id: string): number | null {
  const policy = snapshot.policies.find((p) => p.name === name);
  const reading = snapshot.vmReadings.find((r) => r.query === policy?.vmProfileQuery);
  if (reading === undefined || reading.health === 'UNREACHABLE' || reading.health === 'ERROR') return null;
  const value = reading.values[id];
  return value === undefined || value < 0 || value > 1 ? null : value;
}

/** A VM's share of its own host: its sample, or what the policy's fallback gives it. */
function shareOf(snapshot: Snapshot, name: string, server: ServerObservation): number {
  const sample = sampleOf(snapshot, name, server.id);
  if (sample !== null) return sample;
  const policy = snapshot.policies.find((p) => p.name === name);
  const reading = snapshot.hostReadings.find((r) => r.query === policy?.imbalanceQuery);
  const value = reading?.values[server.host] ?? 0;
  const neighbours = snapshot.servers.filter((s) => s.host === server.host);
  if (policy?.vmProfileFallback === 'host_average') return value / neighbours.length;
  if (policy?.vmProfileFallback !== 'flavor_vcpu_ratio') return 0;
  let vcpus = 0;
  for (const s of neighbours) vcpus += s.vcpus;
  return vcpus > 0 ? (value * server.vcpus) / vcpus : value / neighbours.length;
}
