const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'no right to read it',
  EISDIR: 'it is a directory',
};

/** Why a file cannot be read, in words where they are known. @param error of a function of node:fs */
export function whyUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
  return code === null ? 'unknown reason' : (REASONS[code] ?? code);
}
