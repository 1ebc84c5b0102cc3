import { readdirSync, readFileSync } from 'node:fs';
import type { CompleteEngineOptions, Decision, Policy, Snapshot, Step } from '@kronos/contracts';
import type { DecideInput } from '@kronos/placement';
import { decideInput, memoryOf, type Sketch, type SketchHost, type SketchVm } from '@kronos/placement/testing';
import { parse } from 'yaml';
import { z } from 'zod';

const values = z.record(z.string(), z.number());
const free = z.looseObject({});

/** A VM: its weights in the order of the policies, or an object with the weights and more. */
const vmSchema = z.union([
  z.array(z.number()),
  z.strictObject({
    w: z.array(z.number().nullable()),
    ramMb: z.number().optional(),
    vcpus: z.number().optional(),
    set: free.optional(),
  }),
]);

const goldenSchema = z.strictObject({
  title: z.string(),
  about: z.string(),
  policies: z.record(z.string(), free),
  hosts: z.record(
    z.string(),
    z
      .strictObject({
        score: values.optional(),
        capacityValue: values.optional(),
        size: z.number().optional(),
        zone: z.string().optional(),
        disabled: z.boolean().optional(),
        down: z.boolean().optional(),
        freeMb: z.number().optional(),
        set: free.optional(),
        vms: z.record(z.string(), vmSchema).optional(),
      })
      .nullable(),
  ),
  groups: z.record(z.string(), free).optional(),
  migrations: z.array(free).optional(),
  readings: z.record(z.string(), free).optional(),
  memory: free.optional(),
  options: free.optional(),
  snapshot: free.optional(),
  expect: z.strictObject({
    outcome: z.enum(['planned', 'quiet', 'gated']),
    reason: z.string().optional(),
    /** `vm: from -> to, phase[, parks][, after N ...]`, in order. */
    steps: z.array(z.string()).optional(),
    combined: z.number().optional(),
    stuck: z.array(z.string()).optional(),
    warnings: z.array(z.string()).optional(),
    evacuations: z.array(z.string()).optional(),
    refusals: z.array(z.string()).optional(),
    /** Every gate that blocks the cycle, in order. */
    gates: z.array(z.string()).optional(),
    /** Reason that a policy takes no part, by policy. */
    skipped: z.record(z.string(), z.string()).optional(),
    /** Reason against a move of a VM, by its id; `planned` if it moves. */
    verdicts: z.record(z.string(), z.string()).optional(),
    /** Verdict on each host as destination in the start state: `legal`, or the reason against it. By VM, then by host. */
    destinations: z.record(z.string(), z.record(z.string(), z.string())).optional(),
    /** Reason of each step, in order. */
    why: z.array(z.string()).optional(),
    /** The plan of planner=greedy, if the file is about the difference. */
    greedy: z.array(z.string()).optional(),
  }),
});

export type Golden = {
  readonly file: string;
  readonly title: string;
  readonly input: DecideInput & { readonly options: CompleteEngineOptions };
} & z.infer<typeof goldenSchema>['expect'];

/** Reads every golden cluster of the folder, by name. */
export function goldens(): Golden[] {
  const folder = new URL('./', import.meta.url);
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => {
      const golden = goldenSchema.parse(parse(readFileSync(new URL(file, folder), 'utf8')));
      return { file, title: golden.title, input: inputOf(golden), ...golden.expect };
    });
}

type Host = z.infer<typeof goldenSchema>['hosts'][string];

/** A host as a sketch has it, without its VMs. */
function hostOf(host: Host): SketchHost {
  const { vms: _, freeMb, ...rest } = host ?? {};
  return { ...rest, ...(freeMb === undefined ? {} : { free: { MEMORY_MB: freeMb } }) } as SketchHost;
}

/** The VMs of a host as a sketch has them. @param names of the policies, in the order of the weights */
function vmsOf(name: string, host: Host, names: readonly string[]): [id: string, vm: SketchVm][] {
  return Object.entries(host?.vms ?? {}).map(([id, vm]) => {
    const { w, ...more } = Array.isArray(vm) ? { w: vm } : vm;
    const weights = Object.fromEntries(
      names.flatMap((policy, p) => (typeof w[p] === 'number' ? [[policy, w[p]] as const] : [])),
    );
    return [id, { host: name, w: weights, ...more } as SketchVm];
  });
}

function inputOf(golden: z.infer<typeof goldenSchema>): Golden['input'] {
  const names = Object.keys(golden.policies);
  const entries = Object.entries(golden.hosts);
  const hosts = Object.fromEntries(entries.map(([name, host]) => [name, hostOf(host)]));
  const vms = Object.fromEntries(entries.flatMap(([name, host]) => vmsOf(name, host, names)));
  const input = decideInput({
    policies: golden.policies as Record<string, Partial<Policy>>,
    hosts,
    vms,
    ...(golden.groups === undefined ? {} : { groups: golden.groups as NonNullable<Sketch['groups']> }),
    ...(golden.migrations === undefined ? {} : { migrations: golden.migrations }),
    snapshot: (golden.snapshot ?? {}) as Partial<Snapshot>,
    memory: memoryOf(golden.memory ?? {}),
    options: (golden.options ?? {}) as Partial<CompleteEngineOptions>,
  });
  for (const [query, set] of Object.entries(golden.readings ?? {}))
    for (const reading of input.snapshot.hostReadings) if (reading.query === query) Object.assign(reading, set);
  return input;
}

/** A step in the form of golden files. */
export function line(step: Step): string {
  const after = step.dependsOn.map((task) => task.replace(/^.*-s/, '')).join(' ');
  return `${step.serverId}: ${step.from} -> ${step.to}, ${step.phase}${step.parking ? ', parks' : ''}${after === '' ? '' : `, after ${after}`}`;
}

export const stuckLine = (stuck: Decision['stuck'][number]): string => `${stuck.serverId}: ${stuck.reason.code}`;
