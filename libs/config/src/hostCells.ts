/** The file of `[nova] host_topology`: the NUMA cells of hosts, which no API shows. */
import { errorText, type HostCell } from '@kronos/contracts';
import { LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import type { Problem } from './errors.ts';

const cell = z.strictObject({
  id: z.int().min(0),
  /** CPUs of `[compute] cpu_dedicated_set` in this cell. */
  dedicated_cpus: z.int().min(0).default(0),
  /** CPUs of `[compute] cpu_shared_set` in this cell. */
  shared_cpus: z.int().min(0).default(0),
  memory_mb: z.int().min(1),
  /** Huge pages: size in KiB -> number. */
  pages: z.record(z.string().regex(/^[1-9]\d*$/), z.int().min(0)).default({}),
});
const entries = z
  .array(
    z.strictObject({
      hosts: z.string().min(1),
      cells: z
        .array(cell)
        .min(1)
        .refine((cells) => new Set(cells.map(({ id }) => id)).size === cells.length, 'two cells have one id'),
    }),
  )
  .min(1);

/** Hosts that are alike, and their cells. */
export interface HostCells {
  /** Comma list of names; `*` stands for any characters. */
  readonly hosts: string;
  readonly cells: readonly HostCell[];
}

export interface ParsedHostCells {
  readonly hosts: readonly HostCells[];
  readonly problems: readonly Problem[];
}

const REMEDY = 'Write a list of entries with hosts and cells; see docs/real-clouds.md.';

/** Parses the file. With problems there are no hosts. */
export function parseHostCells({ file, text }: { readonly file: string; readonly text: string }): ParsedHostCells {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, version: '1.2' });
  const syntax = document.errors.slice(0, 1).map(({ pos, message }): Problem => {
    const { line } = lines.linePos(pos[0]);
    return { file, line, option: null, problem: `is not YAML: ${message}`, remedy: 'Correct the syntax at this line.' };
  });
  if (syntax.length > 0) return { hosts: [], problems: syntax };
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    const problem = `cannot be read: ${errorText(error)}`;
    return { hosts: [], problems: [{ file, line: null, option: null, problem, remedy: REMEDY }] };
  }
  const parsed = entries.safeParse(value);
  if (!parsed.success)
    return {
      hosts: [],
      problems: parsed.error.issues.map(({ path, message }): Problem => {
        const node = document.getIn(
          path.filter((key) => typeof key !== 'symbol'),
          true,
        ) as { range?: [number] } | undefined;
        const line = node?.range === undefined ? null : lines.linePos(node.range[0]).line;
        const place = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
        return { file, line, option: place === '' ? null : place, problem: message, remedy: REMEDY };
      }),
    };
  return {
    hosts: parsed.data.map(({ hosts, cells }) => ({
      hosts,
      cells: cells.map(({ id, dedicated_cpus, shared_cpus, memory_mb, pages }) => ({
        id,
        dedicatedCpus: dedicated_cpus,
        sharedCpus: shared_cpus,
        memoryMb: memory_mb,
        pages: Object.entries(pages).map(([sizeKb, total]) => ({ sizeKb: Number(sizeKb), total })),
      })),
    })),
    problems: [],
  };
}
