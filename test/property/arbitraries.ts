import type { CompleteEngineOptions, GroupPolicy, Policy } from '@kronos/contracts';
import type { InFlightTask, Memory } from '@kronos/placement';
import { decideInput, SKETCH_TIME, type Sketch, type SketchHost, type SketchVm } from '@kronos/placement/testing';
import fc from 'fast-check';
import { type Case, CLOSED_WINDOW, OPEN_WINDOW } from './verifier.ts';

/** How much of the search a case may use: enough for small clusters to find exchanges, little enough for thousands of cases. */
const WORK = 60_000;

const seconds = (ago: number): string => new Date(Date.parse(SKETCH_TIME) - 1000 * ago).toISOString();

const share = (most: number) => fc.integer({ min: 0, max: most }).map((n) => n / 100);

const zone = fc.constantFrom<string | null>('z1', 'z1', 'z1', 'z2');

const hostArb: fc.Arbitrary<SketchHost> = fc
  .record({
    zone,
    kind: fc.integer({ min: 0, max: 29 }),
    free: fc.constantFrom(0, 1024, 2048, 4096, 1_000_000, 1_000_000),
    size: fc.constantFrom(1, 1, 1, 2),
    version: fc.constantFrom(8, 8, 8, 8, 8, 9),
  })
  .map(({ zone: z, kind, free, size, version }) => ({
    zone: z,
    free: { MEMORY_MB: free },
    ...(kind === 0 ? { down: true } : {}),
    ...(kind === 1 || kind === 2 ? { disabled: true } : {}),
    sizeDrawn: size,
    set: {
      hypervisorVersion: version,
      ...(kind === 3 ? { inventory: null } : {}),
      ...(kind === 4
        ? { service: { status: 'unknown', state: 'unknown', forcedDown: false, disabledReason: null } }
        : {}),
      ...(kind === 5 ? { service: { status: 'enabled', state: 'up', forcedDown: true, disabledReason: null } } : {}),
    },
  }));

const vmArb = (
  hosts: number,
  policies: number,
): fc.Arbitrary<SketchVm & { kind: number; diskGb: number; age: number | null }> =>
  fc.record({
    host: fc.integer({ min: 0, max: hosts - 1 }).map((h) => `h${h}`),
    w: fc
      .array(share(25), { minLength: policies, maxLength: policies })
      .chain((w) =>
        fc
          .integer({ min: 0, max: 19 })
          .map((lost) => Object.fromEntries(w.flatMap((x, p) => (lost === p ? [] : [[`p${p}`, x] as const])))),
      ),
    ramMb: fc.constantFrom(512, 1024, 2048),
    vcpus: fc.integer({ min: 1, max: 4 }),
    kind: fc.integer({ min: 0, max: 79 }),
    diskGb: fc.constantFrom(0, 0, 20),
    age: fc.constantFrom(null, 60, 86_400),
  });

function vmSet(kind: number): NonNullable<SketchVm['set']> {
  switch (kind) {
    case 0:
      return { locked: true };
    case 1:
      return { status: 'SHUTOFF', vmState: 'stopped' };
    case 2:
      return { taskState: 'resize_prep' };
    case 3:
      return { optedOutBy: 'kronos:exclude' };
    case 4:
      return { extraSpecs: { 'hw:tpm_model': 'tpm-crb' } };
    case 5:
      return { pinnedAvailabilityZone: 'z1' };
    case 6:
      return { pinnedAvailabilityZone: undefined };
    case 7:
      return { status: 'PAUSED' };
    case 8:
      return { alsoOn: ['h0'] };
    case 9:
      return { windows: [OPEN_WINDOW] };
    case 10:
      return { windows: [CLOSED_WINDOW] };
    case 11:
      return { windows: ['now and then'] };
    default:
      return {};
  }
}

export type CaseShape = {
  /** The mode of the drawn policies; `any` draws it. */
  readonly mode?: Policy['mode'];
  readonly options?: Partial<CompleteEngineOptions>;
  /** Only hosts and VMs that nothing is wrong with, and no past. */
  readonly plain?: boolean;
};

/** Draws the parts of an aggregate with that many hosts and policies. */
const drawnArb = (hosts: number, policies: number) =>
  fc.record({
    vms: fc.array(vmArb(hosts, policies), { minLength: 1, maxLength: 14 }),
    thresholds: fc.array(fc.constantFrom(0, 0, 0.05, 0.1, 0.3), { minLength: policies, maxLength: policies }),
    weights: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: policies, maxLength: policies }),
    budget: fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 8, 8, 8),
    fallback: fc.constantFrom<Policy['vmProfileFallback'][]>('skip', 'flavor_vcpu_ratio', 'host_average'),
    groups: fc.array(
      fc.record({
        policy: fc.constantFrom<GroupPolicy[]>('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity'),
        max: fc.constantFrom(1, 1, 2),
        size: fc.integer({ min: 1, max: 4 }),
      }),
      { maxLength: 3 },
    ),
    sick: fc.integer({ min: 0, max: 19 }),
    capacityThreshold: fc.constantFrom(0.5, 0.8, 1),
    past: pastArb(hosts),
    options: optionsArb,
  });
type Drawn = ReturnType<typeof drawnArb> extends fc.Arbitrary<infer T> ? T : never;

/** A small aggregate with everything in it that a rule is about, its past, and options. */
export function caseArb(shape: CaseShape = {}): fc.Arbitrary<Case> {
  return fc
    .record({
      hosts: fc.array(hostArb, { minLength: 2, maxLength: 6 }),
      policies: fc.integer({ min: 1, max: 3 }),
      sized: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    })
    .chain(({ hosts, policies, sized }) =>
      drawnArb(hosts.length, policies).map((drawn) => caseOf(shape, hosts, sized, drawn)),
    );
}

function caseOf(shape: CaseShape, hosts: readonly SketchHost[], sized: boolean, drawn: Drawn): Case {
  const plain = shape.plain === true;
  const vms = vmsOf(drawn.vms, plain);
  const input = decideInput({
    policies: policiesOf(drawn, shape.mode ?? 'spread'),
    hosts: Object.fromEntries(hosts.map((host, h) => [`h${h}`, shownHost(host, { plain, sized })])),
    vms,
    groups: groupsOf(drawn.groups, Object.keys(vms)),
    memory: plain ? {} : drawn.past,
    options: { searchWorkLimit: WORK, ...(plain ? {} : drawn.options), ...shape.options },
  });
  for (const reading of input.snapshot.hostReadings) {
    // Sums of weights may leave [0,1] where sizes differ.
    for (const host of Object.keys(reading.values))
      if (!reading.query.endsWith('_size')) reading.values[host] = Math.min(1, reading.values[host] ?? 0);
  }
  if (!plain) sicken(input.snapshot.hostReadings[0], drawn.sick);
  return input;
}

/** Spoils a reading in one of several ways, or not. */
function sicken(reading: Case['snapshot']['hostReadings'][number] | undefined, sick: number): void {
  if (reading === undefined) return;
  if (sick === 0) reading.health = 'STALE';
  if (sick === 1) delete reading.values.h0;
  if (sick === 2) reading.values.h0 = 1.5;
  if (sick === 3) reading.health = 'UNREACHABLE';
}

function vmsOf(drawn: Drawn['vms'], plain: boolean): Record<string, SketchVm> {
  const vms: Record<string, SketchVm> = {};
  drawn.forEach(({ kind, diskGb, age, ...vm }, v) => {
    const createdAt = age === null ? null : seconds(age);
    vms[`v${String(v).padStart(2, '0')}`] = { ...vm, set: { diskGb, createdAt, ...(plain ? {} : vmSet(kind)) } };
  });
  return vms;
}

function policiesOf(drawn: Drawn, mode: Policy['mode']): Sketch['policies'] {
  const total = drawn.weights.reduce((a, b) => a + b, 0);
  return Object.fromEntries(
    drawn.thresholds.map((threshold, p) => [
      `p${p}`,
      {
        mode,
        threshold,
        weight: (drawn.weights[p] ?? 1) / total,
        maxMigrationsPerCycle: drawn.budget,
        vmProfileFallback: drawn.fallback,
        ...(mode === 'pack' ? { capacityThreshold: drawn.capacityThreshold } : {}),
      },
    ]),
  );
}

function shownHost(
  host: SketchHost,
  { plain, sized }: { readonly plain: boolean; readonly sized: boolean },
): SketchHost {
  const { sizeDrawn, ...rest } = host as SketchHost & { sizeDrawn: number };
  const one: SketchHost = plain ? { zone: 'z1', free: rest.free ?? {} } : rest;
  return sized ? { ...one, size: sizeDrawn } : one;
}

/** Groups of VMs one after the other. */
function groupsOf(drawn: Drawn['groups'], ids: readonly string[]): NonNullable<Sketch['groups']> {
  let next = 0;
  return Object.fromEntries(
    drawn.map(({ policy, max, size }, g) => {
      const members = ids.slice(next, next + size);
      next += size;
      return [`g${g}`, { policy, maxServerPerHost: policy.endsWith('anti-affinity') ? max : 1, members }];
    }),
  );
}

const optionsArb: fc.Arbitrary<Partial<CompleteEngineOptions>> = fc.record({
  evacuateDisabledHosts: fc.boolean(),
  enforceHardAffinity: fc.boolean(),
  enforceSoftAffinity: fc.boolean(),
  restrictToAz: fc.boolean(),
  allowParking: fc.boolean(),
  balance: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
  requireAllPolicies: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  minGain: fc.constantFrom(0, 0.001, 0.02),
  targetRatio: fc.constantFrom(0.5, 0.85, 1),
  moveOverheadGib: fc.constantFrom(0, 8, 100),
  minInstanceAgeSeconds: fc.constantFrom(0, 0, 0, 0, 3600),
  softRules: fc.constantFrom<CompleteEngineOptions['softRules'][]>('veto', 'veto', 'penalty'),
  alternates: fc.integer({ min: 0, max: 2 }),
  packHeadroomHosts: fc.constantFrom(0, 0, 1),
  packReachCycles: fc.integer({ min: 1, max: 3 }),
});

/** Moves in flight, quarantines, cooldowns and failures of hosts. */
function pastArb(hosts: number): fc.Arbitrary<Partial<Memory>> {
  const vm = fc.integer({ min: 0, max: 13 }).map((v) => `v${String(v).padStart(2, '0')}`);
  const host = fc.integer({ min: 0, max: hosts - 1 }).map((h) => `h${h}`);
  return fc.record({
    inFlight: fc.array(fc.record({ vm, from: host, to: host, started: fc.boolean() }), { maxLength: 2 }).map((tasks) =>
      tasks
        .filter((task, i) => task.from !== task.to && tasks.findIndex((t) => t.vm === task.vm) === i)
        .map(
          (task, i): InFlightTask => ({
            taskId: `old-s${i}`,
            serverId: task.vm,
            from: task.from,
            destination: task.to,
            resources: { VCPU: 1, MEMORY_MB: 1024 },
            weights: { p0: { source: 0.1, destination: 0.1 }, p1: { source: 0.05, destination: 0.05 } },
            ramMb: 1024,
            startedAtMs: task.started ? Date.parse(seconds(300)) : null,
          }),
        ),
    ),
    quarantines: fc
      .array(fc.record({ vm, ago: fc.constantFrom(60, 3000, 9000), forever: fc.boolean() }), { maxLength: 2 })
      .map((facts) =>
        Object.fromEntries(
          facts.map(({ vm: id, ago, forever }) => [
            id,
            [
              {
                cause: 'failure' as const,
                atMs: Date.parse(seconds(ago + 60)),
                errorType: 'MigrationFailed',
                seconds: null,
              },
              {
                cause: 'operator' as const,
                atMs: Date.parse(seconds(ago)),
                errorType: null,
                seconds: forever ? -1 : 1800,
              },
            ],
          ]),
        ),
      ),
    releases: fc
      .array(fc.record({ vm, ago: fc.constantFrom(700, 3000) }), { maxLength: 2 })
      .map((facts) => Object.fromEntries(facts.map(({ vm: id, ago }) => [id, [Date.parse(seconds(ago))]]))),
    hostFailures: fc
      .array(fc.record({ host, count: fc.integer({ min: 1, max: 4 }) }), { maxLength: 1 })
      .map((facts) =>
        Object.fromEntries(
          facts.map(({ host: name, count }) => [
            name,
            Array.from({ length: count }, (_, i) => Date.parse(seconds(100 + 60 * i))),
          ]),
        ),
      ),
  });
}
