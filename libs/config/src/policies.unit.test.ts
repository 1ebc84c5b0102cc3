import { policySchema } from '@kronos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { parsePolicies, policyFileSchema } from './policies.ts';

const told = (text: string): string[] =>
  parsePolicies({ file: 'policies.yaml', text }).problems.map(
    (p) => `${p.file}${p.line === null ? '' : `:${p.line}`} ${p.option}: ${p.problem} | ${p.remedy}`,
  );

const cpu = {
  name: 'cpu',
  mode: 'spread',
  weight: 1,
  imbalance_query: 'a',
  vm_profile_query: 'b',
  vm_profile_label: 'uuid',
  threshold: 0.2,
};
const pack = { ...cpu, mode: 'pack', capacity_query: 'c', capacity_threshold: 0.8 };
const file = (...policies: object[]) => stringify({ policies });

describe('policies.yaml', () => {
  it('fills in every default, in the form of the contracts', () => {
    const { policies, problems } = parsePolicies({ file: 'p', text: file(cpu) });
    expect(problems).toEqual([]);
    expect(policies).toEqual([
      {
        name: 'cpu',
        mode: 'spread',
        weight: 1,
        imbalanceQuery: 'a',
        hostLabel: 'host',
        vmProfileQuery: 'b',
        vmProfileLabel: 'uuid',
        vmProfileLabelType: 'nova_instance_uuid',
        vmProfileFallback: 'skip',
        threshold: 0.2,
        capacityQuery: null,
        capacityThreshold: null,
        hostSizeQuery: null,
        maxMigrationsPerCycle: 5,
        minSustainedCycles: 0,
        enabled: true,
      },
    ]);
  });

  describe('of source allocation', () => {
    const allocation = { name: 'ram', mode: 'spread', weight: 1, threshold: 0.2, source: 'allocation' };
    it('has the names of its readings in place of queries', () => {
      expect(parsePolicies({ file: 'p', text: file({ ...allocation, resource_class: 'MEMORY_MB' }) })).toMatchObject({
        problems: [],
        policies: [
          {
            allocation: 'MEMORY_MB',
            imbalanceQuery: 'allocated MEMORY_MB',
            vmProfileQuery: 'allocated MEMORY_MB',
            hostSizeQuery: 'total MEMORY_MB',
            capacityQuery: null,
          },
        ],
      });
      expect(parsePolicies({ file: 'p', text: file({ ...allocation, instances: true }) }).policies).toMatchObject([
        { allocation: 'instances', imbalanceQuery: 'allocated instances', hostSizeQuery: null },
      ]);
    });
    it('fills hosts by the same reading in pack mode', () => {
      const packed = { ...allocation, mode: 'pack', resource_class: 'VCPU', capacity_threshold: 0.8 };
      expect(parsePolicies({ file: 'p', text: file(packed) }).policies).toMatchObject([
        { capacityQuery: 'allocated VCPU', capacityThreshold: 0.8 },
      ]);
    });
    it.each([
      [{ ...allocation }, 'needs resource_class or instances'],
      [{ ...allocation, resource_class: 'VCPU', instances: true }, 'has resource_class and instances'],
      [{ ...allocation, resource_class: 'VCPU', imbalance_query: 'x' }, 'is not for source: allocation'],
      [{ ...allocation, resource_class: 'vcpu' }, 'resource_class'],
      [{ ...cpu, instances: true }, 'is for source: allocation'],
    ])('refuses %j', (policy, problem) => {
      const { problems, policies } = parsePolicies({ file: 'p', text: file(policy) });
      expect(policies).toEqual([]);
      expect(problems.map((one) => `${one.option} ${one.problem}`).join()).toContain(problem);
    });
  });

  it('takes the resource class that a policy of queries measures', () => {
    const { policies, problems } = parsePolicies({ file: 'p', text: file({ ...cpu, resource_class: 'VCPU' }) });
    expect(problems).toEqual([]);
    expect(policies).toMatchObject([{ resourceClass: 'VCPU', hostSizeQuery: null }]);
    expect(policies[0]?.allocation).toBeUndefined();
  });

  it('knows every field of the contracts, and no other', () => {
    const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, c: string) => c.toUpperCase());
    // Two fields of the file, and resource_class, say what one field of a loaded policy says.
    const { allocation, ...loaded } = policySchema.shape;
    const { source, instances, ...file } = policyFileSchema.shape;
    expect([allocation, source, instances]).not.toContain(undefined);
    expect(Object.keys(file).map(camel).sort()).toEqual(Object.keys(loaded).sort());
  });

  it('takes several policies whose weights sum to 1, and does not count the disabled ones', () => {
    const thirds = ['a', 'b', 'c'].map((name) => ({ ...cpu, name, weight: 0.333333333 }));
    expect(told(file(...thirds, { ...cpu, name: 'off', weight: 1, enabled: false }))).toEqual([]);
    expect(told(file(pack))).toEqual([]);
  });

  it('names line, policy and field of every problem', () => {
    const text = [
      'policies:',
      '  - name: cpu',
      '    mode: sprad',
      '    weight: 1.5',
      '    imbalance_query: ""',
      '    vm_profile_query: x',
      '    vm_profile_label: "server uuid"',
      '    treshold: 0.2',
      '    max_migrations_per_cycle: 0',
      '  - name: Bad Name',
      '    enabled: maybe',
      '',
    ].join('\n');
    const problems = told(text);
    expect(problems.map((p) => p.slice(0, p.indexOf(': ')))).toEqual([
      'policies.yaml:2 policies[0] "cpu" threshold',
      'policies.yaml:3 policies[0] "cpu" mode',
      'policies.yaml:4 policies[0] "cpu" weight',
      'policies.yaml:5 policies[0] "cpu" imbalance_query',
      'policies.yaml:7 policies[0] "cpu" vm_profile_label',
      'policies.yaml:8 policies[0] "cpu" treshold',
      'policies.yaml:9 policies[0] "cpu" max_migrations_per_cycle',
      'policies.yaml:10 policies[1] "Bad Name" name',
      'policies.yaml:10 policies[1] "Bad Name" mode',
      'policies.yaml:10 policies[1] "Bad Name" weight',
      'policies.yaml:10 policies[1] "Bad Name" imbalance_query',
      'policies.yaml:10 policies[1] "Bad Name" vm_profile_query',
      'policies.yaml:10 policies[1] "Bad Name" vm_profile_label',
      'policies.yaml:10 policies[1] "Bad Name" threshold',
      'policies.yaml:11 policies[1] "Bad Name" enabled',
    ]);
    expect(problems[5]).toContain('is not a field of a policy | Did you mean threshold?');
    expect(problems[1]).toContain('expected one of "spread"|"pack"');
    expect(problems[0]).toContain('is missing');
  });

  it('says where the settings of the older form live now', () => {
    expect(told(file({ ...cpu, aggregate: 'gpu', cooldown: 600 }))).toEqual([
      expect.stringMatching(
        /:9 policies\[0\] "cpu" aggregate: is a field of the older form .*kronos\.conf, \[engine\] aggregates/,
      ),
      expect.stringMatching(
        /:10 policies\[0\] "cpu" cooldown: is a field of the older form .*kronos\.conf, \[engine\] cooldown/,
      ),
    ]);
  });

  it('says between which numbers a field must be', () => {
    const [high, low] = told(file({ ...cpu, threshold: 20, weight: 1, max_migrations_per_cycle: 0 }));
    expect(high).toContain('threshold: must be at most 1');
    expect(low).toContain('max_migrations_per_cycle: must be at least 1');
  });

  it('refuses weights that do not sum to 1, and says the sum', () => {
    expect(told(file({ ...cpu, weight: 0.7 }, { ...cpu, name: 'mem', weight: 0.2 }))).toEqual([
      'policies.yaml:2 policies weight: the weights of the enabled policies sum to 0.9 (cpu 0.7, mem 0.2) | Make them sum to 1.',
    ]);
    expect(told(file({ ...cpu, weight: 0.999998 }))).toHaveLength(1);
    expect(told(file({ ...cpu, weight: 0.9999995 }))).toHaveLength(0);
  });

  it('takes a query of what moves cost, needs none, and refuses it beside allocations', () => {
    const costOf = (more: object) =>
      parsePolicies({ file: 'p', text: file({ ...cpu, ...more }) }).policies[0]?.moveCostQuery;
    expect([costOf({ move_cost_query: 'rate(dirtied[5m])' }), costOf({})]).toEqual(['rate(dirtied[5m])', undefined]);
    const { name, mode, weight, threshold } = cpu;
    const allocation = { name, mode, weight, threshold, source: 'allocation', resource_class: 'VCPU' };
    expect(told(file({ ...allocation, move_cost_query: 'dirtied' }))).toEqual([
      expect.stringContaining('move_cost_query: is not for source: allocation'),
    ]);
  });

  it('takes a level below which a policy does not act, with or without a query of its own, and refuses the query alone', () => {
    const policyOf = (more: object) => parsePolicies({ file: 'p', text: file({ ...cpu, ...more }) }).policies[0];
    expect(policyOf({ act_above: 0.6 })).toMatchObject({ actAbove: 0.6 });
    expect(policyOf({ act_above: 0.1, trigger_query: 'stalls' })).toMatchObject({
      actAbove: 0.1,
      triggerQuery: 'stalls',
    });
    expect(policyOf({})).not.toHaveProperty('actAbove');
    expect(told(file({ ...cpu, trigger_query: 'stalls' }))).toEqual([
      expect.stringContaining('act_above: is missing, and trigger_query needs it'),
    ]);
    expect(told(file({ ...pack, act_above: 0.6 }))).toEqual([
      expect.stringContaining('act_above: is not for mode pack'),
    ]);
  });

  it('takes a target at or below the threshold, refuses one above it, and needs none', () => {
    const targetOf = (target: number) =>
      parsePolicies({ file: 'p', text: file({ ...cpu, target }) }).policies[0]?.target;
    expect([targetOf(0.1), targetOf(0.2), targetOf(0)]).toEqual([0.1, 0.2, 0]);
    expect(told(file({ ...cpu, target: 0.21 }))).toEqual([
      'policies.yaml:9 policies[0] "cpu" target: is 0.21, above the threshold of 0.2 | Set it to the threshold or below.',
    ]);
    expect(told(file(cpu))).toEqual([]);
  });

  it('refuses two policies of one name, two modes, and pack without its capacity', () => {
    const { capacity_query: _, capacity_threshold: __, ...bare } = pack;
    expect(told(file({ ...cpu, weight: 0.5 }, { ...bare, weight: 0.5 }))).toEqual([
      'policies.yaml:9 policies[1] "cpu" name: is the name of the policy in line 2 too | Give each policy its own name.',
      expect.stringContaining('policies.yaml:9 policies[1] "cpu" capacity_query: is missing, and mode pack needs it'),
      expect.stringContaining(
        'policies.yaml:9 policies[1] "cpu" capacity_threshold: is missing, and mode pack needs it',
      ),
      'policies.yaml:10 policies[1] "cpu" mode: is pack, and the policy in line 3 has spread | Put pack and spread policies into separate files, and name the second file in kronos.conf below [aggregate:NAME].',
    ]);
  });

  it('refuses a file in which nothing is enabled', () => {
    expect(told(file({ ...cpu, enabled: false }))[0]).toContain(
      'no policy is enabled | Enable one, or set [engine] balance = false',
    );
    expect(told('policies: []\n')[0]).toContain('no policy is enabled');
  });

  it.each([
    ['', ':1 null: is empty'],
    ['# nothing\n', ':1 null: is empty'],
    ['- name: cpu\n', ':1 null: is not a mapping'],
    ['policies: cpu\n', ':1 policies: is not a list'],
    ['polices: []\n', ':1 polices: is not a field of the file | Did you mean policies?'],
    ['policies:\n  - cpu\n', ':2 policies[0]: is not a mapping'],
    ['policies:\n  - name: [\n', 'is not YAML'],
    ['policies:\n  - name: a\n    name: b\n', ':3 null: is not YAML: Map keys must be unique'],
    ['policies:\n  - *x\n', ':2 policies[0]: is not a mapping'],
    ['policies:\n  - name: *x\n', ':2 policies[0]: cannot be read: Unresolved alias'],
  ])('refuses %j', (text, expected) => {
    expect(told(text)[0]).toContain(expected);
  });

  it('names the first mistake of the syntax: the others follow from it', () => {
    expect(told('policies: [\n  - name: cpu\n    mode: spread\n  - name: memory\n')).toEqual([
      expect.stringMatching(/^[^:]*:2 null: is not YAML/),
    ]);
  });

  it('gives either policies or problems, whatever the text', () => {
    const scalar = fc.oneof(
      fc.string(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constant([]),
      fc.constant({}),
    );
    const policy = fc.record(
      Object.fromEntries(
        Object.keys(policyFileSchema.shape).map((name) => [
          name,
          fc.oneof(fc.constant(Reflect.get(pack, name) ?? 1), scalar),
        ]),
      ),
      { requiredKeys: [] },
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(fc.oneof(policy, scalar)).map((policies) => stringify({ policies })),
    );
    fc.assert(
      fc.property(text, (given) => {
        const { policies, problems } = parsePolicies({ file: 'p', text: given });
        expect(policies.length > 0).toBe(problems.length === 0);
        for (const p of policies) expect(policySchema.parse(p)).toEqual(p);
      }),
    );
  });
});
