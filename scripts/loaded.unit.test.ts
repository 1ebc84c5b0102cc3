import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LOADED } from './loaded.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

describe('the directories of a package', () => {
  it('take part in a run, or are for tests and readers', () => {
    const files = execFileSync('git', ['ls-files', 'libs', 'services'], { cwd: root, encoding: 'utf8' }).split('\n');
    const directories = new Set(files.flatMap((path) => /^(?:libs|services)\/[^/]+\/([^/]+)\//.exec(path)?.[1] ?? []));
    expect([...directories].sort()).toEqual([...LOADED, 'docs', 'histories', 'test', 'testing'].sort());
  });
});
