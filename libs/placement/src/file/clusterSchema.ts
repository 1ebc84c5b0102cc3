import { groupPolicySchema, isRecord } from '@kronos/contracts';
import { LARGEST } from '../cluster/grid.ts';
import { ClusterFileError } from './errors.ts';

/** The part of JSON Schema that cluster files need. */
export type FileSchema = {
  readonly description?: string;
  readonly examples?: readonly unknown[];
} & (
  | {
      readonly type: 'object';
      readonly properties: Readonly<Record<string, FileSchema>>;
      readonly required: readonly string[];
      readonly additionalProperties: false;
    }
  | { readonly type: 'object'; readonly additionalProperties: FileSchema }
  | { readonly type: 'array'; readonly items: FileSchema; readonly minItems?: number; readonly uniqueItems?: true }
  | { readonly type: 'boolean' }
  | { readonly type: 'string'; readonly minLength: 1 }
  | { readonly type: 'string'; readonly enum: readonly string[] }
  | {
      readonly type: 'number';
      readonly minimum?: number;
      readonly exclusiveMinimum?: number;
      readonly maximum: number;
    }
  | { readonly type: 'integer'; readonly minimum: number; readonly maximum: number }
);

/** Amounts of resources: integers up to here are exact, and so are sums of thousands of them. */
const MOST = 2 ** 40;
/** Weights of policies; only their ratios count. */
const MOST_WEIGHT = 1e9;

const text = (description: string) => ({ type: 'string', minLength: 1, description }) as const;
const oneOf = (values: readonly string[], description: string) =>
  ({ type: 'string', enum: values, description }) as const;
const number = (maximum: number, description: string, minimum = 0) =>
  ({ type: 'number', minimum, maximum, description }) as const;
const list = (items: FileSchema, description: string) => ({ type: 'array', items, description }) as const;
const share = number(LARGEST, '');
const amounts = (description: string) =>
  ({ type: 'object', additionalProperties: { type: 'number', minimum: 0, maximum: MOST }, description }) as const;

const whole = (description: string) => ({ type: 'integer', minimum: 0, maximum: MOST, description }) as const;

const hostCell = {
  type: 'object',
  additionalProperties: false,
  required: ['memMb'],
  properties: {
    dedicatedCpus: whole('CPUs that VMs may pin. Default: 0.'),
    sharedCpus: whole('CPUs that VMs without pinned CPUs share. Default: 0.'),
    memMb: whole('All its memory in MiB, the huge pages included.'),
    pages: {
      type: 'object',
      additionalProperties: { type: 'integer', minimum: 0, maximum: MOST },
      description: 'Number of huge pages, by their size in KiB. Default: none.',
    },
  },
} as const satisfies FileSchema;

const vmCell = {
  type: 'object',
  additionalProperties: false,
  required: ['memMb'],
  properties: {
    hostCell: whole(
      'Position, from 0, of the cell of its host on which it is. Default: unknown; then it counts on every one.',
    ),
    dedicatedCpus: whole('CPUs that it pins. Default: 0.'),
    sharedCpus: whole('Other CPUs. Default: 0.'),
    memMb: whole('Memory in MiB.'),
    pageKb: whole('Size of its huge pages in KiB. Default: ordinary memory.'),
  },
} as const satisfies FileSchema;

const host = {
  type: 'object',
  additionalProperties: false,
  required: ['id'],
  properties: {
    id: text('Name of the host, unique in the file.'),
    score: list(share, "Value of the host, one per policy. Default: the sum of its VMs' `w`."),
    size: list(
      { type: 'number', exclusiveMinimum: 0, maximum: MOST },
      'Relative size of the host, one per policy. A VM with the share `w` of its host has the share `w` x size(source) / size(destination) of another. Default: 1.',
    ),
    memFreeMb: number(MOST, 'Free memory in MiB, as an allocation claims it. Default: unlimited.', -MOST),
    vcpusFree: number(MOST, 'Free vCPUs. Default: unlimited.', -MOST),
    free: amounts(
      'Free amounts of other resource classes, by name. A host has nothing of a class that it does not name.',
    ),
    status: oneOf(
      ['enabled', 'disabled'],
      'A disabled host takes no VM and no part in the imbalance; its VMs may leave. Default: enabled.',
    ),
    state: oneOf(
      ['up', 'down'],
      'A host that is down takes no VM and no part in the imbalance; its VMs stay. Default: up.',
    ),
    cells: list(
      hostCell,
      'NUMA cells of the host. VMs with `cells` go only to hosts that have them, unless `engine.move_unknown_topology` is set.',
    ),
    traits: list(
      text(''),
      'Traits of the host. A VM moves only to hosts that have the `HW_CPU_*` traits of its host. Default: unknown.',
    ),
    costGib: number(MOST, 'What each move to or from it costs more, in GiB. Default: 0.'),
    az: text('Availability zone. VMs stay in their zone with `engine.restrict_to_az` or a pin.'),
  },
} as const satisfies FileSchema;

const vm = {
  type: 'object',
  additionalProperties: false,
  required: ['id', 'host', 'w'],
  properties: {
    id: text('Name of the VM, unique in the file.'),
    host: text('Id of the host that it is on.'),
    w: list(share, "What the VM contributes to its host's value, one per policy."),
    vcpus: number(MOST, 'vCPUs that it claims. Default: 0.'),
    memMb: number(MOST, 'Memory that it claims, in MiB. Default: 0.'),
    resources: amounts('What it claims of other resource classes, by name.'),
    cells: list(vmCell, 'NUMA cells that it needs. Default: none.'),
    pin: text('Availability zone that it is pinned to. Default: none.'),
    immovable: { type: 'boolean', description: 'It never moves. Default: false.' },
    hosts: list(text(''), 'Ids of the hosts that it may go to. Default: all hosts.'),
    costGib: number(
      MOST,
      'What a move of it copies, in GiB; `engine.move_overhead_gib` is added. Default: its memory.',
    ),
    costGibTo: {
      type: 'object',
      additionalProperties: { type: 'number', minimum: 0, maximum: MOST },
      description: 'What a move of it costs in place of `costGib`, in GiB, by id of the host that it goes to.',
    },
    recentMoves: whole(
      'How often it was moved lately. Each of these moves adds the cost of a move to the next one. Default: 0.',
    ),
  },
} as const satisfies FileSchema;

const group = {
  type: 'object',
  additionalProperties: false,
  required: ['id', 'policy', 'vms'],
  properties: {
    id: text('Name of the server group, unique in the file.'),
    policy: oneOf(groupPolicySchema.options, 'Rule of the group.'),
    vms: list(text(''), 'Ids of its members.'),
    maxServerPerHost: {
      type: 'integer',
      minimum: 1,
      maximum: MOST,
      description: 'Members that a host may hold (anti-affinity). Default: 1.',
    },
  },
} as const satisfies FileSchema;

/** A cluster with every field. Its plan moves `web-1` to `b`. */
const CELLS = {
  traits: ['HW_CPU_X86_AVX2'],
  cells: [
    { dedicatedCpus: 8, sharedCpus: 8, memMb: 65536, pages: { 1048576: 32 } },
    { dedicatedCpus: 8, sharedCpus: 8, memMb: 65536 },
  ],
} as const;
const EXAMPLE = {
  policies: ['cpu', 'memory'],
  weights: [2, 1],
  thresholds: [0.2, 0.3],
  targets: [0.15, 0.25],
  capacityThresholds: [0.8, 0.9],
  actAbove: [0.6, 0],
  hosts: [
    {
      ...{ id: 'a', score: [0.7, 0.5], size: [1, 1], memFreeMb: 8192, vcpusFree: 4, free: { VGPU: 1 } },
      ...{ status: 'enabled', state: 'up', az: 'z1', ...CELLS },
    },
    { id: 'b', score: [0.3, 0.3], memFreeMb: 32768, vcpusFree: 16, free: { VGPU: 1 }, az: 'z1', ...CELLS },
    {
      ...{ id: 'c', score: [0.5, 0.4], memFreeMb: 32768, vcpusFree: 16, az: 'z1', traits: CELLS.traits },
      costGib: 4,
    },
  ],
  vms: [
    {
      ...{
        id: 'web-1',
        host: 'a',
        w: [0.2, 0.1],
        vcpus: 4,
        memMb: 8192,
        resources: { VGPU: 1 },
        pin: 'z1',
        costGib: 9,
        costGibTo: { b: 12 },
        recentMoves: 1,
      },
      cells: [{ hostCell: 0, dedicatedCpus: 2, sharedCpus: 2, memMb: 8192, pageKb: 1048576 }],
    },
    { id: 'web-2', host: 'c', w: [0.2, 0.1], vcpus: 4, memMb: 8192, hosts: ['b', 'c'] },
    { id: 'db', host: 'a', w: [0.2, 0.2], vcpus: 8, memMb: 16384, immovable: true },
  ],
  groups: [{ id: 'web', policy: 'anti-affinity', vms: ['web-1', 'web-2'], maxServerPerHost: 1 }],
} as const;

/** The form of a cluster file. {@link checkForm} and the published JSON Schema are both this. */
export const clusterFileSchema = {
  type: 'object',
  description: 'A cluster for `kronos plan --cluster`.',
  additionalProperties: false,
  required: ['policies', 'weights', 'hosts', 'vms'],
  examples: [EXAMPLE],
  properties: {
    policies: {
      type: 'array',
      items: text(''),
      minItems: 1,
      uniqueItems: true,
      description: 'Names of the policies. Every list below with one number per policy is in this order.',
    },
    weights: list(number(MOST_WEIGHT, ''), 'Share of each policy in the combined imbalance; normalised to sum 1.'),
    thresholds: list(
      number(LARGEST, ''),
      'Imbalance (max - min of the host values) above which each policy asks for moves. Default: 0.',
    ),
    targets: list(
      number(LARGEST, ''),
      'Imbalance that a plan aims at, at most the threshold. Default: `engine.target_ratio` x threshold.',
    ),
    capacityThresholds: list(
      number(LARGEST, ''),
      'Pack mode: hosts are filled below this value, one per policy. Default: 1.',
    ),
    actAbove: list(
      number(LARGEST, ''),
      'The policy asks for moves only while an enabled host that is up has a value above this, one per policy. Default: it always does.',
    ),
    hosts: list(host, 'Hosts.'),
    vms: list(vm, 'VMs.'),
    groups: list(group, 'Server groups. Default: none.'),
  },
} as const satisfies FileSchema;

/** @throws ClusterFileError that names the first place where the value does not have the form, and what it must be. */
export function checkForm(value: unknown, schema: FileSchema, at = ''): void {
  const place = at === '' ? 'file' : at;
  const wrong = (problem: string): ClusterFileError => new ClusterFileError(place, problem);
  switch (schema.type) {
    case 'object':
      if (!isRecord(value)) throw wrong('must be an object');
      checkObject(value, schema, at === '' ? '' : `${at}.`);
      return;
    case 'array':
      if (!Array.isArray(value)) throw wrong('must be a list');
      if (value.length < (schema.minItems ?? 0)) throw wrong('must not be empty');
      checkItems(value, schema, at);
      return;
    case 'boolean':
      if (typeof value !== 'boolean') throw wrong('must be true or false');
      return;
    case 'string':
      checkText(value, schema, wrong);
      return;
    default:
      checkNumber(value, schema, wrong);
  }
}

function checkItems(
  items: readonly unknown[],
  schema: Extract<FileSchema, { readonly type: 'array' }>,
  at: string,
): void {
  for (const [i, item] of items.entries()) checkForm(item, schema.items, `${at}[${i}]`);
  if (schema.uniqueItems === true) checkUnique(items, (i) => `${at}[${i}]`);
}

/** @param before what stands before a field's name in problems */
function checkObject(
  value: Readonly<Record<string, unknown>>,
  schema: Extract<FileSchema, { readonly type: 'object' }>,
  before: string,
): void {
  if (schema.additionalProperties !== false) {
    for (const [key, item] of Object.entries(value)) checkForm(item, schema.additionalProperties, `${before}${key}`);
    return;
  }
  const known = Object.keys(schema.properties);
  for (const key of Object.keys(value))
    if (!known.includes(key))
      throw new ClusterFileError(`${before}${key}`, `is unknown; known fields are ${known.join(', ')}`);
  for (const key of schema.required)
    if (!Object.hasOwn(value, key)) throw new ClusterFileError(`${before}${key}`, 'is missing');
  for (const [key, item] of Object.entries(value)) {
    const property = schema.properties[key];
    if (property !== undefined) checkForm(item, property, `${before}${key}`);
  }
}

function checkText(
  value: unknown,
  schema: Extract<FileSchema, { readonly type: 'string' }>,
  wrong: (problem: string) => ClusterFileError,
): void {
  if (typeof value !== 'string' || value === '') throw wrong('must be a text');
  if ('enum' in schema && !schema.enum.includes(value)) throw wrong(`must be one of ${schema.enum.join(', ')}`);
}

function checkNumber(
  value: unknown,
  schema: Extract<FileSchema, { readonly type: 'number' | 'integer' }>,
  wrong: (problem: string) => ClusterFileError,
): void {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw wrong('must be a number');
  if (schema.type === 'integer' && !Number.isInteger(value)) throw wrong('must be a whole number');
  if ('exclusiveMinimum' in schema && schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
    throw wrong(`must be above ${schema.exclusiveMinimum}`);
  if (schema.minimum !== undefined && value < schema.minimum) throw wrong(`must be at least ${schema.minimum}`);
  if (value > schema.maximum) throw wrong(`is ${value}; it must be at most ${schema.maximum}`);
}

/** @throws ClusterFileError that names the first id that was there before. */
export function checkUnique(ids: readonly unknown[], at: (i: number) => string): void {
  const seen = new Set<unknown>();
  for (const [i, id] of ids.entries()) {
    if (seen.has(id)) throw new ClusterFileError(at(i), `repeats ${JSON.stringify(id)}`);
    seen.add(id);
  }
}
