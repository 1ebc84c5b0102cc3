/** The console's JSON interface, answered from the recording of the page: there is no ledger. */

/**
 * An answer that is no data.
 *
 * @public
 */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
    this.afterMs = 0;
  }
}

let answers = () => null;
/** @param given the answer to a path; null: there is none */
export function serve(given) {
  answers = given;
}

/** @public */
export const nowMs = () => Date.now();

/** @public */
export async function read(path) {
  const answer = answers(path);
  if (answer === null) throw new Refused(404, 'This file does not answer that: kronos replay FILE does.');
  return answer;
}

/** @public */
export const write = async () => {
  throw new Refused(404, 'A file changes nothing.');
};

const orRefused = (error) => {
  if (error instanceof Refused) return { refused: error };
  throw error;
};
/** @public */
export const readOrRefused = (path) => read(path).catch(orRefused);
/** @public */
export const tryRead = (path) => read(path).catch(orRefused);
