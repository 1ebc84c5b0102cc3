import { canonicalJson, isRecord, logEventSchemas, type StoredEvent } from '@kronos/contracts';
import {
  type AggregateFacts,
  type AllFacts,
  type ControlFacts,
  initialAggregateFacts,
  initialAllFacts,
  type LogState,
} from './state.ts';

/**
 * Raised whenever the same events fold to another value of a known field. A new event or a new field needs no other version: parts name the
 * events that their writer read, and have its fields.
 */
export const FOLD_VERSION = 9;

/** Every `type/version` that this fold understands. A state made by a reader of fewer, or of more, is not this fold's. */
const readableEvents: readonly string[] = logEventSchemas
  .map((schema) => `${schema.shape.type.value}/${schema.shape.version.value}`)
  .sort();

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One aggregate's part of the state at a log sequence, as JSON. All parts of one sequence together are the state. */
export type CheckpointPart = {
  readonly aggregate: string;
  readonly sequence: number;
  readonly foldVersion: number;
  readonly state: Json;
};

/** The readable body of a part of a checkpoint. */
type PartBody = {
  /** Identifies the event `sequence`, so that a checkpoint of another log is recognised. */
  anchor: string;
  /** `type/version` of the events that were readable. */
  reads: readonly string[];
  /** Every aggregate that has a part at this sequence. */
  aggregates: readonly string[];
  /** The facts about all aggregates; the same in every part. */
  all: Json;
  /** The facts about this aggregate. */
  facts: Json;
};

/** Identifies an event of the log: its id, or for one that cannot be read the id that it claims. */
export const anchorOf = ({ event }: StoredEvent): string =>
  event.type === 'unreadable' ? `${event.claimedType}/${event.claimedVersion ?? '?'}` : event.id;

/**
 * The state in parts, one per aggregate. Without any aggregate there is none: there is nothing to start from yet.
 *
 * @param anchor {@link anchorOf} the event at the state's sequence
 */
export function toParts(state: LogState, anchor: string): CheckpointPart[] {
  const aggregates = [...state.aggregates.keys()].sort();
  const all = encode(state.all);
  return aggregates.map((aggregate) => {
    const facts = encode(state.aggregates.get(aggregate) ?? initialAggregateFacts);
    const body: PartBody = { anchor, reads: readableEvents, aggregates, all, facts };
    return { aggregate, sequence: state.sequence, foldVersion: FOLD_VERSION, state: body as unknown as Json };
  });
}

export type Restored =
  | { readonly ok: true; readonly state: LogState; readonly anchor: string }
  /** Why these parts are no state to start from. `otherVersion`: another version of Kronos folded them, and nothing is wrong. */
  | { readonly ok: false; readonly problem: string; readonly otherVersion: boolean };

/** The state that these parts are, all of one sequence. Digests are the caller's to check first. */
export function fromParts(parts: readonly CheckpointPart[]): Restored {
  const [one] = parts;
  if (one === undefined) return no('there is no part');
  const aggregates = new Map<string, AggregateFacts>();
  const names = new Set<string>();
  let all: AllFacts = initialAllFacts;
  let common: string | null = null;
  let anchor = '';
  for (const part of parts) {
    if (part.foldVersion !== FOLD_VERSION)
      return ofAnother(`${part.aggregate}: fold version ${part.foldVersion}, this one is ${FOLD_VERSION}`);
    if (part.sequence !== one.sequence)
      return no(`${part.aggregate} is at sequence ${part.sequence}, ${one.aggregate} at ${one.sequence}`);
    const body = bodyOf(part.state);
    if (body === null) return no(`${part.aggregate}: the state has not the form of fold version ${FOLD_VERSION}`);
    if (canonicalJson(body.reads) !== canonicalJson(readableEvents))
      return ofAnother(`${part.aggregate}: it was folded by a version of Kronos that reads other events`);
    const text = canonicalJson([body.anchor, body.all]);
    if (common !== null && text !== common)
      return no(`${part.aggregate} and ${one.aggregate} disagree on what holds for all`);
    common = text;
    anchor = body.anchor;
    for (const name of body.aggregates) names.add(name);
    const facts = decodeFacts(body.facts, initialAggregateFacts);
    const forAll = decodeFacts(body.all, initialAllFacts);
    if (facts === null || forAll === null)
      return no(`${part.aggregate}: the state has not the form of fold version ${FOLD_VERSION}`);
    all = forAll;
    aggregates.set(part.aggregate, facts);
  }
  for (const name of names) if (!aggregates.has(name)) return no(`the part of ${name} is missing`);
  return { ok: true, state: { sequence: one.sequence, all, aggregates }, anchor };
}

/** The state as one canonical text: equal states have equal texts, however they were reached. */
export const canonicalState = (state: LogState): string =>
  canonicalJson({
    sequence: state.sequence,
    all: encode(state.all),
    aggregates: Object.fromEntries([...state.aggregates].map(([name, facts]) => [name, encode(facts)])),
  });

const no = (problem: string): Restored => ({ ok: false, problem, otherVersion: false });
const ofAnother = (problem: string): Restored => ({ ok: false, problem, otherVersion: true });

/** A table becomes an object, a set an array in its order; everything else is JSON already. */
function encode(facts: ControlFacts): Json {
  const out: { [key: string]: Json } = {};
  for (const [key, value] of Object.entries(facts) as [string, unknown][]) {
    if (value instanceof Map) out[key] = Object.fromEntries(value) as Json;
    else if (value instanceof Set) out[key] = [...value] as Json;
    else out[key] = value as Json;
  }
  return out;
}

/** The inverse of {@link encode}; the form of each field is that of the initial facts. Null: it has another form. */
function decodeFacts<T extends ControlFacts>(json: Json, form: T): T | null {
  if (!isRecord(json)) return null;
  const out: { [key: string]: unknown } = {};
  for (const [key, like] of Object.entries(form) as [string, unknown][]) {
    const value = json[key];
    if (value === undefined) return null;
    if (like instanceof Map) {
      if (!isRecord(value)) return null;
      out[key] = new Map(Object.entries(value));
    } else if (like instanceof Set) {
      if (!Array.isArray(value)) return null;
      out[key] = new Set(value);
    } else if (Array.isArray(like) !== Array.isArray(value)) return null;
    else out[key] = value;
  }
  return Object.keys(json).length === Object.keys(form).length ? (out as T) : null;
}

function bodyOf(state: Json): PartBody | null {
  if (!isRecord(state)) return null;
  const { anchor, reads, aggregates, all, facts } = state;
  if (typeof anchor !== 'string' || !isStrings(reads) || !isStrings(aggregates)) return null;
  return all === undefined || facts === undefined ? null : { anchor, reads, aggregates, all, facts };
}

const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
