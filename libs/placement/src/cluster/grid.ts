/**
 * Values, weights and their sums are whole multiples of 2^-40 (below a millionth of a millionth). Below 8192, adding and subtracting
 * them is exact. So sums do not depend on the order of their terms, an undone move restores the same bits, and a plan that starts from
 * the outcome of another plan starts from the same numbers.
 */
const STEPS = 2 ** 40;

/** The largest value of a host, load of a VM, and sum of loads that fit together on the grid without rounding. */
export const LARGEST = 4096;

export const onGrid = (value: number): number => Math.round(value * STEPS) / STEPS;
