import { z } from 'zod';

/** What a scenario says of a server, nothing changes, and only Nova's answers show. */
export const fixedFactsSchema = z.object({ configDrive: z.boolean().default(false) });
export type FixedFacts = z.infer<typeof fixedFactsSchema>;
