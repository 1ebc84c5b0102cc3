/** Asks the worker that decides. One question at a time: another one ends the worker with what it is searching for. */
import { againMs } from './again.js';

/** One that asks: its worker and its question are its own. */
export function decider() {
  let worker = null;
  /** Whether the worker still searches. */
  let busy = false;
  /** The question, and the newest answer to it; `answer` null: none has come yet. */
  let asked = { key: null, answer: null, error: null };
  /** Loads of the worker's files that failed in a row. */
  let failures = 0;

  function ended() {
    worker?.terminate();
    worker = null;
    busy = false;
  }

  function again(key, changed) {
    if (asked.key !== key) return;
    asked = { ...asked, key: null };
    changed();
  }

  /**
   * The newest answer to a question; asks it where it is another one than before.
   *
   * @param key says which question it is
   * @param question what the worker takes, or nothing while it is not known
   * @param changed called when an answer has come
   */
  return function answerTo(key, question, changed) {
    if (key === asked.key) return asked;
    if (busy) ended();
    asked = { key, answer: null, error: null };
    busy = true;
    worker ??= new Worker('/console/deciderWorker.js', { type: 'module' });
    const become = (next) => {
      if (asked.key !== key) return;
      asked = { ...asked, ...next };
      changed();
    };
    worker.onmessage = ({ data }) => {
      failures = 0;
      busy = !data.whole;
      become({ answer: data });
    };
    worker.onerror = (event) => {
      event.preventDefault();
      ended();
      become({ error: event.message ?? 'the decision core could not be loaded' });
      // A file that could not be fetched may be there the next time.
      if (event.message !== undefined) return;
      failures++;
      setTimeout(again, againMs(failures), key, changed);
    };
    worker.postMessage(question);
    return asked;
  };
}

export const answerTo = decider();
