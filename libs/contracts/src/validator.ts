import type { z } from 'zod';
import { type Misfit, validatorSource } from './validatorSource.ts';

export type ReadValue<T> =
  | { readonly ok: true; readonly value: T }
  /** The first thing that does not fit, with its path: `data.tasks: must be a number, is a string`. */
  | { readonly ok: false; readonly problem: string };

/** `undefined`: the value fits and has known fields only. `open`: it fits and may have others. */
type Judge = (value: unknown) => Misfit | 'open' | undefined;

/**
 * A validator generated from a schema. It gives the value without the fields that the schema does not know, and stops at the
 * first thing that does not fit: its time is bounded by the size of the value. Parsing with the schema collects every problem,
 * however many there are.
 *
 * The generated function judges a value in one pass. A value with known fields only is returned as it is; the schema itself
 * leaves out the others, of values that fit.
 *
 * A kind or a check of schemas that it does not know is a RangeError at the first value: a check that was left out would let
 * through what the schema refuses.
 */
export function validator<T extends z.ZodType>(schema: T): (value: unknown) => ReadValue<z.infer<T>> {
  // Compiled at the first use: a command reads few types.
  let judge: Judge | null = null;
  return (value) => {
    judge ??= compiled(schema);
    const verdict = judge(value);
    if (verdict === undefined) return { ok: true, value: value as z.infer<T> };
    if (verdict !== 'open') return { ok: false, problem: `${verdict.path.join('.') || 'body'}: ${verdict.text}` };
    const parsed = schema.safeParse(value);
    if (parsed.success) return { ok: true, value: parsed.data };
    const [issue] = parsed.error.issues;
    return { ok: false, problem: `${issue?.path.join('.') || 'body'}: ${issue?.message ?? 'does not fit'}` };
  };
}

/**
 * The code is made of the schemas of this package and of nothing that comes from outside, as zod makes its own.
 *
 * @throws RangeError for a kind or a check of schemas that is not known
 */
function compiled(schema: z.ZodType): Judge {
  const { code, constants } = validatorSource(schema);
  return new Function('constants', code)(constants) as Judge;
}
