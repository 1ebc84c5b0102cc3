/** Characters of a value that stays on one line: a server does. */
const LINE = 1000;

/**
 * JSON for people and for `grep`: a server, a host or a reading on a line of its own, and only what is longer over several. Line breaks
 * and the spaces after them are the only white space, so that {@link withoutLines} gives the JSON without any.
 */
export const inLines = (value: unknown): string => `${broken(value, '')}\n`;

function broken(value: unknown, indent: string): string {
  const flat = JSON.stringify(value);
  if (flat.length <= LINE || typeof value !== 'object' || value === null) return flat;
  const inner = `${indent}  `;
  const [open, parts, close] = Array.isArray(value)
    ? ['[', value.map((part: unknown) => broken(part ?? null, inner)), ']']
    : [
        '{',
        Object.entries(value).flatMap(([key, part]) =>
          part === undefined ? [] : [`${JSON.stringify(key)}:${broken(part, inner)}`],
        ),
        '}',
      ];
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}`;
}

/** The text without line breaks and the spaces after them. No string in JSON holds a line break. */
export const withoutLines = (text: string): string => text.replaceAll(/\n */g, '');
