/** Answers about recorded moments: they never change, so the newest of them are kept. */
import { tryRead } from './api.js';

function keeper(most) {
  const kept = new Map();
  return async (path) => {
    const known = kept.get(path);
    if (known !== undefined) return known;
    const answer = await tryRead(path);
    if (answer.refused === undefined) kept.set(path, answer);
    for (const oldest of kept.keys()) {
      if (kept.size <= most) break;
      kept.delete(oldest);
    }
    return answer;
  };
}

export const recorded = keeper(60);
/** The inputs of decisions: a whole snapshot each. */
export const recordedDecision = keeper(8);
