import { matchesPattern } from './pattern.ts';

/** The part of a server by which it may be opted out. */
export interface OptOutFacts {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly name: string | null;
  readonly projectId: string | null;
  readonly flavor: { readonly name: string } | null;
  /** Undefined: Nova does not show them (below microversion 2.98). */
  readonly imageProperties: Readonly<Record<string, string>> | undefined;
}

/**
 * The entry of the option `opt_out` by which a server is opted out of being moved; null: it takes part. The first entry that applies is
 * given.
 *
 * - `project:ID`, `flavor:NAME`: the servers of a project or of a flavor;
 * - `name:PATTERN`: the servers of a name, where `*` stands for any text;
 * - `image:KEY` or `image:KEY=VALUE`: the servers whose image has the property;
 * - anything else is the name of a metadata key or of a tag, which tenants can set. A key counts with any value but `false` (case and
 *   surrounding space do not matter), and so does an image's property.
 */
export const optedOutBy = (server: OptOutFacts, entries: readonly string[]): string | null =>
  entries.find((entry) => applies(entry, server)) ?? null;

function applies(entry: string, server: OptOutFacts): boolean {
  const [, kind, rest = ''] = /^(project|flavor|name|image):(.+)$/.exec(entry) ?? [];
  switch (kind) {
    case 'project':
      return server.projectId === rest;
    case 'flavor':
      return server.flavor?.name === rest;
    case 'name':
      return server.name !== null && matchesPattern(rest, server.name);
    case 'image': {
      // Properties that Nova does not show may be set.
      if (server.imageProperties === undefined) return true;
      const [key = '', value] = rest.split(/=(.*)/s);
      const has = Object.hasOwn(server.imageProperties, key) ? server.imageProperties[key] : undefined;
      return value === undefined ? isOn(has) : has === value;
    }
    default:
      return (
        isOn(Object.hasOwn(server.metadata, entry) ? server.metadata[entry] : undefined) || server.tags.includes(entry)
      );
  }
}

const isOn = (value: string | undefined): boolean => value !== undefined && value.trim().toLowerCase() !== 'false';
