/** The notes of a release: a section of CHANGELOG.md, under the headings that OpenStack's reno gives. Pure. */

/** Heading in the changelog -> heading in the notes; in the order of reno. */
const HEADINGS = {
  Added: 'New Features',
  Changed: 'Upgrade Notes',
  Removed: 'Upgrade Notes',
  Deprecated: 'Deprecation Notes',
  Security: 'Security Issues',
  Fixed: 'Bug Fixes',
} as const;

const isHeading = (name: string): name is keyof typeof HEADINGS => Object.hasOwn(HEADINGS, name);

/** The text of a version's section; null when there is none. */
export function sectionOf(changelog: string, version: string): string | null {
  const [, text = null] =
    new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\][^\n]*\n(.*?)(?=^## \\[|(?![\\s\\S]))`, 'ms').exec(
      changelog,
    ) ?? [];
  return text?.trim() ?? null;
}

/**
 * The notes as Markdown: what stands before the first heading is the prelude.
 *
 * @throws Error when the version has no section, or the section a heading that reno does not know
 */
export function releaseNotes(changelog: string, version: string): string {
  const section = sectionOf(changelog, version);
  if (section === null)
    throw new Error(`CHANGELOG.md has no section [${version}]: name the section of this release so`);
  const [prelude = '', ...parts] = section.split(/^### /m);
  const texts = new Map<string, string[]>();
  for (const part of parts) {
    const end = part.indexOf('\n');
    const name = part.slice(0, end).trim();
    if (!isHeading(name))
      throw new Error(
        `CHANGELOG.md: section [${version}] has the heading ${name}: use one of ${Object.keys(HEADINGS).join(', ')}`,
      );
    texts.set(HEADINGS[name], [...(texts.get(HEADINGS[name]) ?? []), part.slice(end).trim()]);
  }
  const body = [...new Set(Object.values(HEADINGS))].flatMap((heading) => {
    const text = texts.get(heading);
    return text === undefined ? [] : [`## ${heading}\n\n${text.join('\n')}\n`];
  });
  return [`# Kronos ${version}\n`, ...(prelude.trim() === '' ? [] : [`${prelude.trim()}\n`]), ...body].join('\n');
}
