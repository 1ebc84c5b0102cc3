import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { releaseNotes } from './releaseNotes.ts';
import { namesVersion, versionProblem, withVersion } from './versions.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((path) => statSync(join(root, path), { throwIfNoEntry: false })?.isFile());
const { version: from } = JSON.parse(read('package.json')) as { version: string };
const next = { from, to: '77.8.9', day: '2030-01-02' };

describe('a new version', () => {
  it('is set in every file of the project that names the old one as its own', () => {
    const own = new RegExp(
      `^ *"?(version|appVersion)"?: "?${from.replaceAll('.', '\\.')}"?,?$|(KRONOS_VERSION:-|kronos_tag: ")${from.replaceAll('.', '\\.')}`,
      'm',
    );
    const product = tracked.filter(
      (path) => /^(libs|services|deploy|package)/.test(path) && !/\.test\.ts$|testing\/|\/schemas\//.test(path),
    );
    const naming = product.filter((path) => own.test(read(path)));
    expect(naming.filter((path) => !namesVersion(path))).toEqual([]);
    for (const path of naming) {
      const text = withVersion(path, read(path), next);
      expect(text, path).toContain('77.8.9');
      // A dependency of the lock file may have the same version.
      if (path !== 'package-lock.json') expect(own.test(text), path).toBe(false);
    }
  });

  it('leaves the versions of dependencies as they are', () => {
    type Lock = { packages: Record<string, { version?: string }> };
    const before = JSON.parse(read('package-lock.json')) as Lock;
    const after = JSON.parse(withVersion('package-lock.json', read('package-lock.json'), next)) as Lock;
    for (const [path, { version }] of Object.entries(after.packages))
      if (path.includes('node_modules/')) expect(version, path).toBe(before.packages[path]?.version);
    expect(after.packages['']?.version).toBe('77.8.9');
    expect(after.packages['libs/cli']?.version).toBe('77.8.9');
  });

  it('comes after the old one, and is written as a version', () => {
    expect(versionProblem('0.1.0', '1.0.0')).toBeNull();
    expect(versionProblem('1.9.0', '1.10.0')).toBeNull();
    expect(versionProblem('1.0.0', '1.0.0')).toBe('1.0.0 does not come after 1.0.0');
    expect(versionProblem('1.2.0', '1.1.9')).toBe('1.1.9 does not come after 1.2.0');
    expect(versionProblem('1.0.0', 'v2')).toMatch(/v2 is no version/);
  });

  it('names the file that is not as expected', () => {
    expect(() => withVersion('deploy/helm/kronos/Chart.yaml', 'name: kronos\n', next)).toThrow(
      /Chart\.yaml does not have/,
    );
    expect(() => withVersion('CHANGELOG.md', '## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- x\n', next)).toThrow(
      /nothing below \[Unreleased\]/,
    );
    expect(() =>
      withVersion('CHANGELOG.md', '## [Unreleased]\n\n- x\n\n## [77.8.9] - 2026-01-01\n\n- x\n', next),
    ).toThrow(/has a section \[77\.8\.9\] already/);
  });
});

describe('release notes', () => {
  const changelog = withVersion(
    'CHANGELOG.md',
    '# Changelog\n\n## [Unreleased]\n\nRun provision.\n\n### Added\n- a\n\n### Fixed\n- f\n\n### Changed\n- c\n\n### Removed\n- r\n\n## [0.1.0] - 2026-01-01\n\n- old\n',
    next,
  );

  it("are the version's section under reno's headings", () => {
    expect(releaseNotes(changelog, '77.8.9')).toBe(
      '# Kronos 77.8.9\n\nRun provision.\n\n## New Features\n\n- a\n\n## Upgrade Notes\n\n- c\n- r\n\n## Bug Fixes\n\n- f\n',
    );
  });

  it('refuse a version without a section, and a heading that says nothing to an operator', () => {
    expect(() => releaseNotes(changelog, '9.9.9')).toThrow(/no section \[9\.9\.9\]/);
    expect(() => releaseNotes('## [1.0.0] - x\n\n### Misc\n- x\n', '1.0.0')).toThrow(/heading Misc/);
  });

  it("can be made of the project's own changelog", () => {
    expect(releaseNotes(read('CHANGELOG.md'), 'Unreleased')).toContain('# Kronos Unreleased\n');
    expect(releaseNotes(read('CHANGELOG.md'), '0.1.0')).toContain('# Kronos 0.1.0\n');
  });
});
