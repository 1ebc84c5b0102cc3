/** Which imports are wrong: a library that imports a service, a service that imports another, and circles. Pure. */

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
