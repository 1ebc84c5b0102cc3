/** The session of the person. The browser keeps its cookie, which no script can read. */
import { againMs } from './again.js';
import { nowMs, Refused, read, write } from './api.js';

const nobody = {
  acting: false,
  person: null,
  csrf: null,
  until: null,
  userDomainName: null,
  cells: [],
  custodian: false,
};
let session = nobody;
let changed = () => undefined;
let timer;
/** Reads of the session that failed in a row. */
let failures = 0;

export const person = () => session.person;
/** Whether the person may skip unreadable events. */
export const isCustodian = () => session.custodian;
export const canLogIn = () => session.acting;
/** Aggregates that servers of this one can go to between cells. */
export const cellTargets = (aggregate) =>
  session.cells.includes(aggregate) ? session.cells.filter((one) => one !== aggregate) : [];
export const userDomain = () => session.userDomainName;
export const onSession = (listener) => {
  changed = listener;
};

function become(next) {
  const other = next.person !== session.person || next.acting !== session.acting;
  session = next;
  clearTimeout(timer);
  // At its end the ledger is asked again: it knows whether the session was used in another tab.
  if (next.until !== null) timer = setTimeout(load, Math.max(0, Date.parse(next.until) - nowMs()) + 1000);
  if (other) changed();
}

export async function load() {
  try {
    become(await read('/session'));
    failures = 0;
  } catch (error) {
    clearTimeout(timer);
    if (!error.passes) return become(nobody);
    // A ledger that did not answer is asked again: without its answer nobody can log in.
    failures++;
    timer = setTimeout(load, againMs(failures));
  }
}

export async function logIn(credentials) {
  become(await write('POST', '/session', credentials));
}

export async function logOut() {
  try {
    become(await write('DELETE', '/session', undefined, session.csrf));
  } catch {
    await load();
  }
}

async function send(path, body) {
  try {
    return await write('POST', path, body, session.csrf);
  } catch (error) {
    // The session has ended: the page shows it.
    if (error instanceof Refused && error.status === 401) await load();
    throw error;
  }
}
export const foresee = (command) => send('/commands/preview', { command });
export const give = (command, digest, comment) => send('/commands', { command, digest, comment });
