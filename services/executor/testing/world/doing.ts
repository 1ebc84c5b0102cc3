import type { Fact } from '../../src/taskFacts.ts';
import type { Command } from '../../src/taskStages.ts';

export type Body = Fact extends infer F ? (F extends { readonly at: unknown } ? Omit<F, 'at'> : never) : never;
export type Ended = Extract<Command, { do: 'appendEnded' }>['ended'];

/** The attempt that an agent works on. */
export type Doing = { readonly attempt: number; readonly destination: string; readonly agent: number };
