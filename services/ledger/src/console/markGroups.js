/** Marks of the time bar that stand near each other, as one. Pure. */

/** Which of the marks of one place shows its form. */
const FIRST = ['failed', 'plan', 'pause', 'drain', 'person', 'moved'];

/**
 * Marks that would stand nearer than `least` pixels to each other become one, with all of them.
 *
 * @param marks ascending; @param x where a time stands, in pixels
 */
export function merged(marks, x, least) {
  const groups = [];
  for (const mark of marks) {
    const at = x(mark.ms);
    const last = groups.at(-1);
    if (last !== undefined && at - last.x < least) last.marks.push(mark);
    else groups.push({ x: at, marks: [mark] });
  }
  return groups.map((group) => ({
    ...group,
    kind: FIRST.find((kind) => group.marks.some((mark) => mark.kind === kind)) ?? group.marks[0].kind,
  }));
}
