import { worstOf } from '@kronos/projections';

/** The worst policy's imbalance, as a multiple of its threshold (`ratioOf` of libs/rules); null: no policy has one. */
export const worstRatio = (policies: Parameters<typeof worstOf>[0]): number | null => worstOf(policies)?.ratio ?? null;

/** As people read it: "1.66x"; "" without one. */
export const ratioText = (ratio: number | null): string => (ratio === null ? '' : `${ratio.toFixed(2)}x`);
