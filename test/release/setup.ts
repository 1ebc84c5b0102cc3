import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MADE_BY_TESTS } from './files.ts';

/** Where the first test that needs the files of a release makes them, for all of the run. */
export default function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-release-files-'));
  process.env[MADE_BY_TESTS] = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}
