/** Number of insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last: number[] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row: number[] = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(replaced, at(last, j) + 1, at(row, j - 1) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, at(beforeLast, j - 2) + 1);
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

const at = (row: readonly number[], index: number): number => row[index] ?? Number.POSITIVE_INFINITY;

/** The known name that was probably meant, or null when none is close (more than a third of the letters differ). */
export function nearest(name: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  const wanted = normal(name);
  for (const candidate of known) {
    const distance = editDistance(wanted, normal(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

const normal = (name: string): string => name.toLowerCase().replaceAll('-', '_');

/** `Did you mean "compute-07"? `, or nothing where no name is near. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const near = nearest(name, known);
  return near === null ? '' : `Did you mean ${JSON.stringify(near)}? `;
}
