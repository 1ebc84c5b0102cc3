import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';

/** Expensive figures that do not depend on the planner. A file of JSON lines keeps them for the next run. */
export class Kept<T> {
  readonly #file: string | undefined;
  readonly #known = new Map<string, T>();

  /** @param file keeps the figures; undefined: nothing is kept. Delete it when the inputs of the figures have changed. */
  constructor(file: string | undefined, schema: z.ZodType<T>) {
    this.#file = file;
    if (file === undefined || !existsSync(file)) return;
    const line = z.strictObject({ name: z.string(), value: z.unknown() });
    for (const text of readFileSync(file, 'utf8').split('\n')) {
      if (text === '') continue;
      const { name, value } = line.parse(JSON.parse(text));
      this.#known.set(name, schema.parse(value));
    }
  }

  /** Returns the kept figure of that name if it is good enough; otherwise computes and keeps it. */
  async get(name: string, make: () => Promise<T>, isEnough: (kept: T) => boolean = () => true): Promise<T> {
    const known = this.#known.get(name);
    if (known !== undefined && isEnough(known)) return known;
    const value = await make();
    this.#known.set(name, value);
    if (this.#file !== undefined) appendFileSync(this.#file, `${JSON.stringify({ name, value })}\n`);
    return value;
  }
}
