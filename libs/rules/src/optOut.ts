/**
 * The name by which a server opts out of being moved; null: it takes part. A name counts as a metadata key with any value but
 * `false` (case and surrounding space do not matter), and as a tag.
 *
 * @param names the option `opt_out`; the first name that applies is given
 */
export function optedOutBy(
  server: { readonly metadata: Readonly<Record<string, string>>; readonly tags: readonly string[] },
  names: readonly string[],
): string | null {
  for (const name of names) {
    const value = Object.hasOwn(server.metadata, name) ? server.metadata[name] : undefined;
    if (value !== undefined && value.trim().toLowerCase() !== 'false') return name;
    if (server.tags.includes(name)) return name;
  }
  return null;
}
