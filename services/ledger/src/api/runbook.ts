import { readFileSync } from 'node:fs';

/** The runbook of this version, by section. */
export function runbookReader(file = new URL('../../../../docs/runbook.md', import.meta.url)) {
  let sections: ReadonlyMap<string, string> | null = null;
  /** The text of a section in Markdown; null: there is none, or this installation has no runbook. */
  return (section: string): string | null => {
    sections ??= sectionsOf(text(file));
    return sections.get(section) ?? null;
  };
}

function text(file: URL): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/** Sections of the third level by the anchor of their heading. */
export const sectionsOf = (markdown: string): Map<string, string> =>
  new Map(
    markdown
      .split(/^(?=#{1,3} )/m)
      .filter((part) => part.startsWith('### '))
      .map((part) => [(part.split('\n', 1)[0] ?? '').slice(4).trim().toLowerCase(), part.trim()]),
  );
