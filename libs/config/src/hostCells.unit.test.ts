import { describe, expect, it } from 'vitest';
import { parseHostCells } from './hostCells.ts';

const parse = (text: string) => parseHostCells({ file: 'cells.yaml', text });

describe('the file of NUMA cells', () => {
  it('gives hosts their cells, in the words of the snapshot', () => {
    const text = `
- hosts: cmp1*, gpu3
  cells:
    - { id: 0, dedicated_cpus: 12, shared_cpus: 4, memory_mb: 131072, pages: { 2048: 512, 1048576: 64 } }
    - { id: 1, shared_cpus: 16, memory_mb: 131072 }
`;
    expect(parse(text)).toEqual({
      hosts: [
        {
          hosts: 'cmp1*, gpu3',
          cells: [
            {
              id: 0,
              dedicatedCpus: 12,
              sharedCpus: 4,
              memoryMb: 131072,
              pages: [
                { sizeKb: 2048, total: 512 },
                { sizeKb: 1048576, total: 64 },
              ],
            },
            { id: 1, dedicatedCpus: 0, sharedCpus: 16, memoryMb: 131072, pages: [] },
          ],
        },
      ],
      problems: [],
    });
  });

  it.each([
    ['- hosts: cmp1\n  cells: [{ id: 0, memory_mb: 1, cpus: 4 }]\n', '[0].cells[0]', 'cpus'],
    ['- hosts: cmp1\n  cells: [{ id: 0 }]\n', '[0].cells[0].memory_mb', 'expected number'],
    ['- hosts: cmp1\n  cells: []\n', '[0].cells', '>=1'],
    ['- hosts: cmp1\n  cells: [{ id: 0, memory_mb: 1 }, { id: 0, memory_mb: 1 }]\n', '[0].cells', 'one id'],
    ['hosts: cmp1\n', null, 'expected array'],
    ['- hosts: [\n', null, 'is not YAML'],
    ['- hosts: *nobody\n', null, 'nobody'],
  ])('names the place of what is wrong: %j', (text, option, problem) => {
    const { hosts, problems } = parse(text);
    expect(hosts).toEqual([]);
    expect(problems[0]).toMatchObject({ file: 'cells.yaml', option });
    expect(problems[0]?.problem).toContain(problem);
  });
});
