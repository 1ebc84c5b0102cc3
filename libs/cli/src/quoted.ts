/** A text as one word of a POSIX shell. Pure. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
