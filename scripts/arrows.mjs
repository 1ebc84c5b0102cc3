/**
 * Finds wrong imports: a library that imports a service, a service that imports another, circles, and what a package does not declare.
 * Pure.
 */

/** The room of a file by its path below src: its directory, or the file itself. */
export const roomOf = (path) => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : path);

/**
 * The first circle of arrows as the list of its members; null: there is none.
 *
 * @param {Readonly<Record<string, readonly string[]>>} arrows
 * @returns {string[] | null}
 */
function circleOf(arrows) {
  const done = new Set();
  /** @type {string[]} */
  const path = [];
  /** @param {string} at @returns {string[] | null} */
  const visit = (at) => {
    if (path.includes(at)) return path.slice(path.indexOf(at));
    if (done.has(at)) return null;
    path.push(at);
    for (const to of arrows[at] ?? []) {
      const circle = visit(to);
      if (circle !== null) return circle;
    }
    path.pop();
    done.add(at);
    return null;
  };
  for (const at of Object.keys(arrows)) {
    const circle = visit(at);
    if (circle !== null) return circle;
  }
  return null;
}

/**
 * Each wrong import in words.
 *
 * @param {Readonly<Record<string, readonly string[]>>} packages each package with the packages that it imports
 * @param {Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>} rooms each package with its rooms, and what those import
 * @returns {string[]}
 */
export function wrongArrows(packages, rooms) {
  const problems = Object.entries(packages).flatMap(([from, to]) =>
    to
      .filter((name) => name.startsWith('services/'))
      .map((name) => `${from} imports ${name}: code that two of them need belongs in libs`),
  );
  const places = [['packages', packages], ...Object.entries(rooms).map(([name, arrows]) => [`${name}/src`, arrows])];
  for (const [place, arrows] of places) {
    const circle = circleOf(arrows);
    if (circle !== null) problems.push(`${place}: a circle of imports: ${[...circle, circle[0]].join(' -> ')}`);
  }
  return problems;
}

/**
 * Imports of other packages of the project that a package.json does not declare, in words. What runs needs `dependencies`; for tests and
 * `testing/`, `devDependencies` will do.
 *
 * @param {string} directory of the package
 * @param {{ name: string, dependencies?: Record<string, string>, devDependencies?: Record<string, string> }} manifest
 * @param {ReadonlyArray<{ path: string, ships: boolean, names: readonly string[] }>} files with the packages that each imports
 * @returns {string[]}
 */
export function undeclaredImports(directory, { name: own, dependencies = {}, devDependencies = {} }, files) {
  const problems = new Map();
  // First what ships: `dependencies` serves both.
  for (const { path, ships, names } of files.toSorted((a, b) => Number(b.ships) - Number(a.ships))) {
    const declared = ships ? dependencies : { ...devDependencies, ...dependencies };
    const where = ships ? 'dependencies' : 'devDependencies';
    for (const name of names)
      if (name !== own && !Object.hasOwn(declared, name) && !problems.has(name))
        problems.set(name, `${path} imports ${name}: add it to the ${where} of ${directory}/package.json`);
  }
  return [...problems.values()];
}
