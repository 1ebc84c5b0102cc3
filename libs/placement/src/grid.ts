/**
 * Values, weights and sums of them are whole multiples of 2^-40 (below a millionth of a millionth). As long as they stay
 * below 8192 adding and subtracting them is exact, so that sums do not depend on the order of their terms, a move taken
 * back leaves the very same bits, and planning on an outcome sees the numbers that the first plan ended with.
 */
const STEPS = 2 ** 40;

/** The largest value of a host, load of a VM, and sum of loads that fit together on the grid without rounding. */
export const LARGEST = 4096;

export const onGrid = (value: number): number => Math.round(value * STEPS) / STEPS;
