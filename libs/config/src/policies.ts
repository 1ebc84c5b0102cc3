import {
  allocationLabels,
  allocationQuery,
  errorText,
  INSTANCES,
  isRecord,
  type Policy,
  policySchema,
  queryUses,
  totalQuery,
} from '@kronos/contracts';
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { z } from 'zod';
import type { Problem } from './errors.ts';
import { nearest } from './nearest.ts';

/** Tolerance for the sum of the weights of the enabled policies, which is 1. */
const WEIGHT_TOLERANCE = 1e-6;

const promql = z.string().trim().min(1);
const label = z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/);

/**
 * One policy as policies.yaml writes it: names, defaults and, for the documentation, what each field means.
 * The loaded form is {@link Policy}.
 */
export const policyFileSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]*$/)
    .meta({ description: 'Its name, unique in the file: `^[a-z0-9][a-z0-9_-]*$`.' }),
  mode: z.enum(['spread', 'pack']).meta({
    description: 'spread: even out the load. pack: gather it on few hosts. All policies of a file have the same mode.',
  }),
  weight: z
    .number()
    .min(0)
    .max(1)
    .meta({ description: 'Share in the combined imbalance, 0 to 1. The weights of the enabled policies sum to 1.' }),
  source: z.enum(['prometheus', 'allocation']).default('prometheus').meta({
    description:
      'Source of the values: PromQL queries, or the allocations in Placement. An allocation policy has resource_class or instances instead of queries and labels.',
  }),
  resource_class: z
    .string()
    .regex(/^[A-Z0-9_]+$/)
    .nullable()
    .default(null)
    .meta({
      description:
        'Allocation: the resource class that is balanced, such as VCPU or MEMORY_MB. Queries: the one that they measure; without host_size_query, its total in Placement is the size of a host.',
    }),
  instances: z
    .boolean()
    .default(false)
    .meta({ description: 'Allocation: true balances the number of VMs, as shares of the fullest host.' }),
  imbalance_query: promql.meta({ description: 'PromQL: one value per host, a utilisation from 0 to 1.' }),
  host_label: label.default('host').meta({ description: 'Label that names the host in the answers about hosts.' }),
  vm_profile_query: promql.meta({ description: "PromQL: one value per VM, its contribution to its host's value." }),
  vm_profile_label: label.meta({ description: 'Label that names the VM.' }),
  vm_profile_label_type: z
    .enum(['nova_instance_uuid', 'nova_internal_name', 'nova_display_name'])
    .default('nova_instance_uuid')
    .meta({
      description: 'Content of that label: the uuid, the name in libvirt (instance-0000002a), or the display name.',
    }),
  vm_profile_fallback: z.enum(['skip', 'flavor_vcpu_ratio', 'host_average']).default('skip').meta({
    description:
      "A VM without data: skip does not move it; the others give it a share of its host's value, by vCPUs or equal.",
  }),
  threshold: z
    .number()
    .min(0)
    .max(1)
    .meta({ description: 'The imbalance (max - min of the host values) above which this policy asks for moves.' }),
  act_above: z.number().min(0).max(1).nullable().default(null).meta({
    description:
      'The policy acts only while a possible destination has a value above this, however unlike the hosts are. The value is that of trigger_query, else of imbalance_query.',
  }),
  trigger_query: promql.nullable().default(null).meta({
    description:
      'PromQL: one value per host from 0 to 1 that triggers the policy, such as CPU pressure; act_above is its level. The imbalance and the moves are still those of imbalance_query and vm_profile_query.',
  }),
  target: z.number().min(0).max(1).nullable().default(null).meta({
    description:
      'The imbalance that a plan aims at, at most the threshold. Default: `[engine] target_ratio` x threshold.',
  }),
  capacity_query: promql
    .nullable()
    .default(null)
    .meta({ description: 'PromQL: one value per host, its fill level from 0 to 1. Needed in pack mode.' }),
  capacity_threshold: z.number().gt(0).max(1).nullable().default(null).meta({
    description: 'Pack mode: Kronos fills a host only while its capacity value stays below this. Needed in pack mode.',
  }),
  host_size_query: promql
    .nullable()
    .default(null)
    .meta({ description: 'PromQL: the relative size of each host, if hosts differ in size.' }),
  move_cost_query: promql.nullable().default(null).meta({
    description:
      'PromQL: bytes per second of memory that each VM writes, with the label of vm_profile_query. A move of a VM that writes much costs more, because a live migration copies that memory again. A VM without a value counts as the VM of the aggregate that writes most.',
  }),
  max_migrations_per_cycle: z
    .int()
    .min(1)
    .default(5)
    .meta({ description: 'Maximum moves per aggregate and cycle; the largest value of the enabled policies counts.' }),
  min_sustained_cycles: z
    .int()
    .min(0)
    .max(1000)
    .default(0)
    .meta({ description: 'The imbalance must be above the threshold in this many evaluations in a row.' }),
  enabled: z.boolean().default(true).meta({ description: 'false: the policy is ignored.' }),
});
type PolicyFile = z.output<typeof policyFileSchema>;

/** Fields of the older form, and where what they said is said now. */
const MOVED: Readonly<Record<string, string>> = {
  aggregate:
    'Every enabled policy applies to every aggregate that uses this file: name the aggregates in kronos.conf, [engine] aggregates, and remove this line. An aggregate with other policies names another file below [aggregate:NAME].',
  cooldown:
    'The cooldown is the same for all policies: set it in kronos.conf, [engine] cooldown, and remove this line.',
};

const FIELDS: readonly string[] = Object.keys(policyFileSchema.shape);

export interface PoliciesInput {
  /** Name of the file, for problems. */
  readonly file: string;
  readonly text: string;
}

export interface ParsedPolicies {
  /** Complete only when there are no problems. */
  readonly policies: readonly Policy[];
  readonly problems: readonly Problem[];
}

/** Reads policies.yaml: `policies:` with a list. Names the line, the policy and the field of every problem. */
export function parsePolicies({ file, text }: PoliciesInput): ParsedPolicies {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, version: '1.2' });
  const problems: Problem[] = [];
  const lineAt = (offset: number | undefined): number | null =>
    offset === undefined ? null : lines.linePos(offset).line;
  const add = (line: number | null, option: string | null, problem: string, remedy: string) =>
    problems.push({ file, line, option, problem, remedy });

  // The others follow from it.
  for (const error of document.errors.slice(0, 1))
    add(lineAt(error.pos[0]), null, `is not YAML: ${error.message}`, 'Correct the syntax at this line.');
  if (problems.length > 0) return { policies: [], problems };

  const reading: Reading = { document, lineAt, add, policies: [], places: [] };
  const list = listOf(document.contents, reading);
  if (list === null) return { policies: [], problems };
  for (const [index, node] of list.items.entries()) {
    if (isMap(node)) readPolicy(index, node, reading);
    else {
      const offset = isScalar(node) || isSeq(node) ? node.range?.[0] : undefined;
      add(lineAt(offset ?? list.range?.[0]), `policies[${index}]`, 'is not a mapping', 'Write its fields, name first.');
    }
  }
  checkPolicies(reading);
  if (reading.policies.length === list.items.length) checkWeights(reading.policies, lineAt(list.range?.[0]), add);
  return {
    policies: problems.length > 0 ? [] : reading.policies.map(toPolicy),
    problems: problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)),
  };
}

type Add = (line: number | null, option: string | null, problem: string, remedy: string) => void;

/** A file that is being read, and the policies that could be. */
interface Reading {
  readonly document: Document.Parsed;
  readonly lineAt: (offset: number | undefined) => number | null;
  readonly add: Add;
  readonly policies: PolicyFile[];
  readonly places: Place[];
}

const SHAPE = 'Write policies: with a list of policies below it; see kronos config sample --policies.';

/** The list below `policies:`; null: there is none, which is a problem. */
function listOf(root: Document.Parsed['contents'], { lineAt, add }: Reading): YAMLSeq | null {
  if (root === null || !isMap(root)) {
    add(lineAt(root?.range?.[0]) ?? 1, null, root === null ? 'is empty' : 'is not a mapping with policies', SHAPE);
    return null;
  }
  const others = root.items.filter((pair) => keyText(pair) !== 'policies');
  for (const pair of others) {
    const key = keyText(pair);
    const remedy = nearest(key, ['policies']) ? 'Did you mean policies?' : SHAPE;
    add(lineAt(keyOffset(pair)), key, 'is not a field of the file', remedy);
  }
  const list = root.get('policies', true);
  if (isSeq(list)) return list;
  if (others.length === 0 || list !== undefined)
    add(lineAt((isScalar(list) || isMap(list) ? list.range : root.range)?.[0]), 'policies', 'is not a list', SHAPE);
  return null;
}

function readPolicy(index: number, node: YAMLMap, { document, lineAt, add, policies, places }: Reading): void {
  const spelled = node.get('name');
  const who = typeof spelled === 'string' ? `policies[${index}] ${JSON.stringify(spelled)}` : `policies[${index}]`;
  const start = lineAt(node.range?.[0]);
  const lineOf = (field: string): number | null => {
    const pair = node.items.find((p) => keyText(p) === field);
    return pair === undefined ? start : lineAt(keyOffset(pair));
  };
  let value: unknown;
  try {
    value = node.toJS(document);
  } catch (error) {
    const why = errorText(error);
    add(start, who, `cannot be read: ${why}`, 'Correct the anchors and aliases (& and *).');
    return;
  }
  for (const { field, problem, remedy } of sourceProblems(value))
    add(lineOf(field), `${who} ${field}`, problem, remedy);
  const parsed = policyFileSchema.safeParse(withAllocation(value));
  if (parsed.success) {
    policies.push(parsed.data);
    places.push({ who, lineOf });
    return;
  }
  for (const issue of parsed.error.issues) {
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) add(lineOf(key), `${who} ${key}`, ...unknownField(key));
      continue;
    }
    const field = String(issue.path[0] ?? '');
    const missing = !node.has(field);
    add(lineOf(field), `${who} ${field}`, missing ? 'is missing' : issueText(issue), fieldRemedy(field));
  }
}

interface Place {
  readonly who: string;
  readonly lineOf: (field: string) => number | null;
}

/** Fields that only policies with queries have: the queries, and what says how their answers are matched. */
const OF_QUERIES: readonly string[] = [
  ...queryUses.map((use) => `${use}_query`),
  'host_label',
  'vm_profile_label',
  'vm_profile_label_type',
  'vm_profile_fallback',
];

/** The fields of a policy that contradict its source, and those that its source needs and it lacks. */
function sourceProblems(value: unknown): { field: string; problem: string; remedy: string }[] {
  if (!isRecord(value)) return [];
  const has = (field: string): boolean => Object.hasOwn(value, field) && value[field] !== null;
  if (value.source !== 'allocation')
    return (['instances'] as const)
      .filter((field) => has(field) && value[field] !== false)
      .map((field) => ({
        field,
        problem: 'is for source: allocation',
        remedy: 'Add source: allocation and remove the queries, or remove this line.',
      }));
  const problems = OF_QUERIES.filter(has).map((field) => ({
    field,
    problem: 'is not for source: allocation',
    remedy: 'Remove this line: the values come from Placement.',
  }));
  const given = [has('resource_class'), value.instances === true].filter(Boolean).length;
  if (given === 1) return problems;
  const problem =
    given === 0 ? 'allocation needs resource_class or instances' : 'allocation has resource_class and instances';
  const remedy = 'Write resource_class: VCPU (or another class of Placement), or instances: true.';
  return [...problems, { field: 'source', problem, remedy }];
}

/** An allocation policy with the names of its readings in place of queries. */
function withAllocation(value: unknown): unknown {
  if (!isRecord(value) || value.source !== 'allocation') return value;
  const named = typeof value.resource_class === 'string' ? value.resource_class : null;
  const query = allocationQuery(named ?? INSTANCES);
  return {
    ...Object.fromEntries(Object.entries(value).filter(([field]) => !OF_QUERIES.includes(field))),
    imbalance_query: query,
    host_label: allocationLabels.host,
    vm_profile_query: query,
    vm_profile_label: allocationLabels.vm,
    ...(value.mode === 'pack' ? { capacity_query: query } : {}),
    ...(named === null ? {} : { host_size_query: totalQuery(named) }),
  };
}

/** The rules over whole policies. */
function checkPolicies({ policies, places, add }: Reading): void {
  const at = (index: number, field: string): [number | null, string] => {
    const place = places[index];
    return [place?.lineOf(field) ?? null, `${place?.who ?? 'policies'} ${field}`];
  };
  for (const [index, policy] of policies.entries()) {
    const first = policies.findIndex((p) => p.name === policy.name);
    if (first !== index)
      add(
        ...at(index, 'name'),
        `is the name of the policy in line ${at(first, 'name')[0]} too`,
        'Give each policy its own name.',
      );
    if (policy.mode !== policies[0]?.mode)
      add(
        ...at(index, 'mode'),
        `is ${policy.mode}, and the policy in line ${at(0, 'mode')[0]} has ${policies[0]?.mode}`,
        'Put pack and spread policies into separate files, and name the second file in kronos.conf below [aggregate:NAME].',
      );
    if (policy.target !== null && policy.target > policy.threshold)
      add(
        ...at(index, 'target'),
        `is ${policy.target}, above the threshold of ${policy.threshold}`,
        'Set it to the threshold or below.',
      );
    const acting = actingProblem(policy);
    if (acting !== null) add(...at(index, 'act_above'), ...acting);
    if (policy.mode === 'pack')
      for (const field of ['capacity_query', 'capacity_threshold'] as const)
        if (policy[field] === null) add(...at(index, field), 'is missing, and mode pack needs it', fieldRemedy(field));
  }
}

/** The rules over the whole file, for when each policy can be read. */
function checkWeights(policies: readonly PolicyFile[], listLine: number | null, add: Add): void {
  const enabled = policies.filter((p) => p.enabled);
  if (enabled.length === 0) {
    add(listLine, 'policies', 'no policy is enabled', 'Enable one, or set [engine] balance = false in kronos.conf.');
    return;
  }
  const sum = enabled.reduce((total, p) => total + p.weight, 0);
  if (Math.abs(sum - 1) > WEIGHT_TOLERANCE) {
    const parts = enabled.map((p) => `${p.name} ${p.weight}`).join(', ');
    add(
      listLine,
      'policies weight',
      `the weights of the enabled policies sum to ${Number(sum.toFixed(9))} (${parts})`,
      'Make them sum to 1.',
    );
  }
}

/** The problem of `act_above`, with its remedy; null: none. */
function actingProblem({ mode, act_above, trigger_query }: PolicyFile): [string, string] | null {
  if (mode === 'pack' && act_above !== null)
    return ['is not for mode pack', 'Remove this line: pack gathers VMs at any load.'];
  if (trigger_query !== null && act_above === null)
    return ['is missing, and trigger_query needs it', fieldRemedy('act_above')];
  return null;
}

function unknownField(key: string): [string, string] {
  const moved = MOVED[key];
  if (moved !== undefined) return ['is a field of the older form of this file', moved];
  const near = nearest(key, FIELDS);
  return [
    'is not a field of a policy',
    near === null ? `The fields are ${FIELDS.join(', ')}.` : `Did you mean ${near}?`,
  ];
}

function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_big' && issue.origin === 'number')
    return `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
  if (issue.code === 'too_small' && issue.origin === 'number')
    return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`;
  const text = issue.message.replace(/^Invalid (input|option|string): /, '');
  return `is wrong: ${text}`;
}

function fieldRemedy(field: string): string {
  const schema = Object.entries(policyFileSchema.shape).find(([name]) => name === field)?.[1];
  return schema?.meta()?.description ?? 'See docs/configuration.md.';
}

const keyText = (pair: Pair): string => (isScalar(pair.key) ? String(pair.key.value) : String(pair.key));

function keyOffset(pair: YAMLMap['items'][number]): number | undefined {
  return isScalar(pair.key) ? pair.key.range?.[0] : undefined;
}

function toPolicy(policy: PolicyFile): Policy {
  return policySchema.parse({
    name: policy.name,
    mode: policy.mode,
    weight: policy.weight,
    imbalanceQuery: policy.imbalance_query,
    hostLabel: policy.host_label,
    vmProfileQuery: policy.vm_profile_query,
    vmProfileLabel: policy.vm_profile_label,
    vmProfileLabelType: policy.vm_profile_label_type,
    vmProfileFallback: policy.vm_profile_fallback,
    threshold: policy.threshold,
    ...(policy.target === null ? {} : { target: policy.target }),
    ...(policy.act_above === null ? {} : { actAbove: policy.act_above }),
    ...(policy.trigger_query === null ? {} : { triggerQuery: policy.trigger_query }),
    capacityQuery: policy.capacity_query,
    capacityThreshold: policy.capacity_threshold,
    hostSizeQuery: policy.host_size_query,
    ...(policy.move_cost_query === null ? {} : { moveCostQuery: policy.move_cost_query }),
    maxMigrationsPerCycle: policy.max_migrations_per_cycle,
    minSustainedCycles: policy.min_sustained_cycles,
    enabled: policy.enabled,
    ...(policy.source === 'allocation'
      ? { allocation: policy.resource_class ?? INSTANCES }
      : policy.resource_class === null
        ? {}
        : { resourceClass: policy.resource_class }),
  } satisfies Policy);
}
