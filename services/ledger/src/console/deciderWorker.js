/**
 * Decides a recorded moment in the browser, with the decision core that the planner runs. A short search answers first; the whole search
 * follows, and gives the planner's own bytes where nothing was changed.
 */
import { canonicalJson, decide, score } from './core.js';
import { changedInput, changesNothing } from './question.js';

/** Candidates of the search that answers first: a small part of the planner's usual limit. */
const SHORT = 300_000;

const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** Null where the browser has no digests: neither https nor this machine. */
async function digestOf(decision) {
  if (globalThis.crypto?.subtle === undefined) return null;
  const bytes = new TextEncoder().encode(canonicalJson(decision));
  return `sha256:${hex(await crypto.subtle.digest('SHA-256', bytes))}`;
}

function decided(input, limit) {
  const options = limit === null ? input.options : { ...input.options, searchWorkLimit: limit };
  return decide({ ...input, options });
}

const shown = ({ outcome, reason, plan, course }) => {
  const steps = (plan?.steps ?? []).map(({ step, serverId, serverName, from, to, ramMb, weights, phase, why }) => {
    return { step, serverId, serverName, from, to, ramMb, weights, phase, why };
  });
  return { outcome, reason, steps, course };
};

/** The steps by the options in force: the recorded ones, or those of a new decision where the recorded one was blocked. */
function presentOf({ input, changes, recorded }, limit) {
  if (!changes.anyway) return { steps: recorded };
  const own = { policies: {}, options: {}, anyway: true };
  return shown(decided(changedInput(input, own, score), limit));
}

async function answer({ input, recorded, changes }, limit) {
  const same = changesNothing(changes);
  const made = decided(changedInput(input, changes, score), limit);
  const would = shown(made);
  const is = same && changes.anyway ? { steps: would.steps } : presentOf({ input, changes, recorded }, limit);
  const digest = limit === null && same && !changes.anyway ? await digestOf(made) : null;
  postMessage({ is, would, digest, whole: limit === null });
}

addEventListener('message', ({ data: question }) => {
  const short = question.input.options.searchWorkLimit > SHORT ? answer(question, SHORT) : Promise.resolve();
  // The page hears of an error of its worker, not of a promise that fails in it.
  short.then(() => answer(question, null)).catch(reportError);
});
