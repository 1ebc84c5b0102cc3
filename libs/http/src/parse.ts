import type { z } from 'zod';
import { BadAnswer, type CallPlace } from './errors.ts';

/** A text of at most N characters, and `...` if it was cut off: the code that hides secrets must see that. */
export const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}...` : text);

/** The words of a body that is no JSON, such as a proxy's page: without markup, at most N characters. */
export function withoutMarkup(body: string, most: number): string {
  const text = body
    .replace(/<(style|script|title)[^>]*>.*?<\/\1>/gis, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return cut(text, most) || 'no reason given';
}

/** The body as JSON. @throws BadAnswer when it is not JSON. */
function parseJson(place: CallPlace, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const start = cut(text.replace(/\s+/g, ' ').trim(), 80);
    throw new BadAnswer(
      place,
      start === '' ? 'the body is empty, JSON expected' : `not JSON: "${start}"`,
      undefined,
      cause,
    );
  }
}

/** The body as `schema` reads it; unknown fields pass. @throws BadAnswer that names a missing or wrong field */
export function parseAs<S extends z.ZodType>(place: CallPlace, schema: S, text: string): z.infer<S> {
  const result = schema.safeParse(parseJson(place, text));
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const more = result.error.issues.length - 1;
  throw new BadAnswer(
    place,
    `${issue?.message ?? 'unexpected shape'}${more > 0 ? ` (and ${more} more)` : ''}`,
    issue === undefined ? undefined : fieldPath(issue.path),
  );
}

function fieldPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path) text += typeof part === 'number' ? `[${part}]` : `${text === '' ? '' : '.'}${String(part)}`;
  return text === '' ? '(body)' : text;
}
