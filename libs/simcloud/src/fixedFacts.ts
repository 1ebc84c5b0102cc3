import { z } from 'zod';

/** Facts of a server from the scenario that nothing changes and only Nova's answers show. */
export const fixedFactsSchema = z.object({ configDrive: z.boolean().default(false) });
export type FixedFacts = z.infer<typeof fixedFactsSchema>;
