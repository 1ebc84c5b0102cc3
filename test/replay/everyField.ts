import { canonicalJson, type LogEvent, logEventSchemas, readLogEvent, type StoredEvent } from '@kronos/contracts';
import { arbitraryOf } from '@kronos/contracts/testing';
import fc from 'fast-check';
import type { z } from 'zod';
import { everyEvent } from './everyEvent.ts';
import { everyTurn } from './everyTurn.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Schema = z.core.$ZodType;

const defOf = (schema: Schema) => (schema as z.core.$ZodTypes)._zod.def;
const isOptional = (schema: Schema): boolean => schema._zod.optin === 'optional';

/** The schemas directly below one, by their place in its values. */
function below(schema: Schema): [place: string, Schema][] {
  const def = defOf(schema);
  if (def.type === 'object') return Object.entries(def.shape).map(([name, field]) => [`.${name}`, field]);
  if (def.type === 'array') return [['[]', def.element]];
  if (def.type === 'record') return [['{}', def.valueType]];
  return def.type === 'nullable' || def.type === 'optional' ? [['', def.innerType]] : [];
}

/** Places of the optional fields in values of a schema. */
export const optionalFields = (schema: Schema): string[] =>
  below(schema).flatMap(([place, one]) => [
    ...(place.startsWith('.') && isOptional(one) ? [place] : []),
    ...optionalFields(one).map((inner) => `${place}${inner}`),
  ]);

/** Places of the optional fields that a value has, with a plus, and of those that it lacks, with a minus. */
export function optionalFieldsOf(schema: Schema, value: unknown): string[] {
  if (value === null || value === undefined) return [];
  return below(schema).flatMap(([place, one]) => {
    const inner =
      place === '' ? [value] : place.startsWith('.') ? [value[place.slice(1) as never]] : Object.values(value);
    const own = place.startsWith('.') && isOptional(one) ? [inner[0] === undefined ? `-${place}` : `+${place}`] : [];
    const deeper = inner.flatMap((each) => optionalFieldsOf(one, each));
    return [...own, ...deeper.map((found) => `${found[0]}${place}${found.slice(1)}`)];
  });
}

/**
 * Variants of a value. `full`: it has each optional field. `sparse`: it has each, and none within the value of another. `bare`: it has none.
 */
const VARIANTS = ['full', 'sparse', 'bare'] as const;
type Variant = (typeof VARIANTS)[number];

/** A value that a schema accepts: the same in each run. */
const drawn = (schema: Schema): Json =>
  JSON.parse(canonicalJson(fc.sample(arbitraryOf(schema), { seed: 1, numRuns: 1 })[0]));

function varied(schema: Schema, value: Json, variant: Variant): Json {
  const def = defOf(schema);
  const within = variant === 'full' ? 'full' : 'bare';
  if (def.type === 'nullable' || def.type === 'optional')
    return value === null ? null : varied(def.innerType, value, variant);
  if (def.type === 'array') {
    const items = value as Json[];
    // An optional field within the items needs an item.
    if (items.length === 0 && variant !== 'bare' && optionalFields(def.element).length > 0)
      return [varied(def.element, drawn(def.element), within)];
    return items.map((item) => varied(def.element, item, variant));
  }
  if (def.type !== 'object') return value;
  const fields = Object.entries(def.shape).flatMap(([name, field]): [string, Json][] => {
    const own = (value as { [key: string]: Json | undefined })[name];
    if (!isOptional(field)) return [[name, varied(field, own ?? null, variant)]];
    return variant === 'bare' ? [] : [[name, varied(field, own ?? drawn(field), within)]];
  });
  return Object.fromEntries(fields);
}

const schemaOf = new Map<string, Schema>(logEventSchemas.map((schema) => [schema.shape.type.value, schema]));

/**
 * Every type of event as {@link everyEvent} writes it, and again in an aggregate of its own for each variant of the optional fields; then what
 * {@link everyTurn} tells apart.
 */
export function everyField(): StoredEvent[] {
  const written = everyEvent();
  const variants = VARIANTS.flatMap((variant, i) => {
    const offset = (i + 1) * written.length;
    return written.map(({ sequence, storedAt, event }): StoredEvent => {
      const schema = schemaOf.get(event.type);
      if (schema === undefined) throw new Error(`${event.type} has no schema`);
      const data = varied(schema, JSON.parse(JSON.stringify(event)), variant);
      // The aggregate, and the ids that have its name in them.
      const body: LogEvent = JSON.parse(JSON.stringify(data).replace(/\bgpu\b/g, `gpu-${variant}`));
      if (body.type === 'event.skipped') {
        body.data.sequence += offset;
        body.data.through += offset;
      }
      return { sequence: sequence + offset, storedAt, event: readLogEvent(body, body.aggregate) };
    });
  });
  const offset = written.length + variants.length;
  const turns = everyTurn(offset);
  return [...written, ...variants, ...turns];
}
