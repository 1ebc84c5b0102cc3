/** Answers about recorded moments: they never change, so the newest of them are kept. */
import { tryRead } from './api.js';

const KEPT = 60;
const kept = new Map();

export async function recorded(path) {
  const known = kept.get(path);
  if (known !== undefined) return known;
  const answer = await tryRead(path);
  if (answer.refused === undefined) kept.set(path, answer);
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(oldest);
  }
  return answer;
}
